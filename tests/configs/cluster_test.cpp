#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"

namespace troupe {

namespace fs = std::filesystem;

namespace {

/// A separate file that extends the base; gone with the object.
class File {
 public:
  explicit File(const std::string& text) {
    std::string name = (fs::temp_directory_path() / "troupe_cluster_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = name;
    Write("run.toml", "schema = 1\nextends = [\"" +
                          fs::absolute("tests/configs/base.toml").string() + "\"]\n" + text);
  }
  ~File() { fs::remove_all(folder_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  LoadedConfig Load(const std::vector<std::string>& overrides = {}) const {
    return LoadConfig((folder_ / "run.toml").string(), overrides);
  }
  std::string Errors(const std::vector<std::string>& overrides = {}) const {
    try {
      Load(overrides);
    } catch (const ConfigErrors& errors) {
      return errors.what();
    }
    return "no error";
  }

  /// The resolved text loads to the same values and prints the same again.
  bool SurvivesPrinting(const LoadedConfig& loaded) const {
    Write("resolved.toml", loaded.resolved_toml);
    const LoadedConfig again = LoadConfig((folder_ / "resolved.toml").string());
    return again.config == loaded.config && again.resolved_toml == loaded.resolved_toml;
  }

 private:
  fs::path folder_;
};

std::vector<ClusterNode> NodesOf(const LoadedConfig& loaded) { return loaded.config.cluster.nodes; }

}  // namespace

TEST_CASE("a cluster that says nothing is one node with all ranks and the documented times") {
  const File file("");
  const LoadedConfig loaded = file.Load();
  CHECK(NodesOf(loaded) == std::vector<ClusterNode>{{"n0", "", 4}});
  ClusterConfig expected;
  expected.ranks = 4;
  expected.nodes = {{"n0", "", 4}};
  CHECK(loaded.config.cluster == expected);
  CHECK(loaded.config.transport == TransportConfig{});
  CHECK(loaded.config.checkpoint == CheckpointConfig{});
  CHECK(expected.heartbeat_ms == 250.0);
  CHECK(expected.dead_after_s == 4.0);
  CHECK_THAT(Explain(loaded, "cluster.nodes"), Catch::StartsWith("cluster.nodes = 1\n  default\n"));
  CHECK(file.SurvivesPrinting(loaded));
}

TEST_CASE("a count of nodes divides the ranks evenly") {
  const File file("[cluster]\nnodes = 2\n");
  const LoadedConfig loaded = file.Load();
  CHECK(NodesOf(loaded) == std::vector<ClusterNode>{{"n0", "", 2}, {"n1", "", 2}});
  CHECK_THAT(loaded.resolved_toml, Catch::Contains("\nnodes = 2\n"));
  CHECK(file.SurvivesPrinting(loaded));
  CHECK(NodesOf(file.Load({"cluster.nodes=4"})).size() == 4);
  CHECK(file.Errors({"cluster.nodes=3"}) ==
        "--set cluster.nodes=3: cluster.nodes: expected a divisor of cluster.ranks = 4, got 3; "
        "nodes can be 1, 2 or 4");
  CHECK(file.Errors({"cluster.nodes=65537"}) ==
        "--set cluster.nodes=65537: cluster.nodes: expected at most 65536 nodes, got 65537");
}

TEST_CASE("every value of a cluster arrives in its field and survives the resolved text") {
  const File file(R"([cluster]
processes = "device"
join = "[fd00::1]:7420"
join_timeout_s = 0.5
wait_for_spare_s = 9
elastic = true
slow_factor = 1.5
slow_steps = 7
replace_slow = true
heartbeat_ms = 20
suspect_after_s = 0.08
dead_after_s = 0.3
stuck_after_s = 6
pass_timeout_s = 7
stall_after_s = 8
tls = "off: the network is trusted"
tls_ca = "ca.pem"
tls_certificate = "n0.pem"
tls_key = "n0.key"

[[cluster.nodes]]
name = "rack-1.a"
address = "fe80::1%eth0"
devices = 3

[[cluster.nodes]]
devices = 1

[transport]
verify = "payload"
tcp = "ucx"
ucx_tls = "tcp,self"
net_devices = "eth0,lo"
port_range = "7500-7600"
spin_us = 50

[checkpoint]
every = 10
keep = 3
replicas = 1
)");
  const LoadedConfig loaded = file.Load();
  const ClusterConfig& cluster = loaded.config.cluster;
  CHECK(cluster.nodes == std::vector<ClusterNode>{{"rack-1.a", "fe80::1%eth0", 3}, {"n1", "", 1}});
  CHECK(cluster.processes == ProcessesPer::kDevice);
  CHECK(cluster.join == "[fd00::1]:7420");
  CHECK(cluster.join_timeout_s == 0.5);
  CHECK(cluster.wait_for_spare_s == 9.0);
  CHECK(cluster.elastic);
  CHECK(cluster.slow_factor == 1.5);
  CHECK(cluster.slow_steps == 7);
  CHECK(cluster.replace_slow);
  CHECK(file.Errors({"cluster.slow_factor=0.5"}) ==
        "--set cluster.slow_factor=0.5: cluster.slow_factor: expected 0 or at least 1, got 0.5");
  CHECK_THAT(file.Errors({"checkpoint.replicas=0"}),
             Catch::Contains("needs checkpoint.replicas = 1 or more"));
  CHECK(file.Load({"cluster.slow_factor=0"}).config.cluster.slow_factor == 0.0);
  CHECK(cluster.heartbeat_ms == 20.0);
  CHECK(cluster.suspect_after_s == 0.08);
  CHECK(cluster.dead_after_s == 0.3);
  CHECK(cluster.stuck_after_s == 6.0);
  CHECK(cluster.pass_timeout_s == 7.0);
  CHECK(cluster.stall_after_s == 8.0);
  CHECK(cluster.tls == ClusterTls::kOff);
  CHECK(fs::path(cluster.tls_ca).filename() == "ca.pem");
  CHECK(fs::path(cluster.tls_certificate).filename() == "n0.pem");
  CHECK(fs::path(cluster.tls_key).filename() == "n0.key");
  CHECK(loaded.config.transport == TransportConfig{.tcp = TransportTcp::kUcx,
                                                   .verify = TransportVerify::kPayload,
                                                   .ucx_tls = "tcp,self",
                                                   .net_devices = "eth0,lo",
                                                   .port_range = "7500-7600",
                                                   .spin_us = 50});
  CHECK(loaded.config.checkpoint == CheckpointConfig{.every = 10, .keep = 3, .replicas = 1});
  CHECK(file.SurvivesPrinting(loaded));
}

TEST_CASE("nodes in braces are nodes, and lists of nodes replace each other") {
  const File file("[[cluster.nodes]]\nname = \"a\"\ndevices = 4\n");
  CHECK(NodesOf(file.Load({"cluster.nodes=2"})).size() == 2);
  const LoadedConfig braces =
      file.Load({"cluster.nodes=[{ name = 'x', devices = 1 }, { name = 'y', devices = 3 }]"});
  CHECK(NodesOf(braces) == std::vector<ClusterNode>{{"x", "", 1}, {"y", "", 3}});
  CHECK(file.SurvivesPrinting(braces));
  CHECK_THAT(Explain(braces, "cluster.nodes.y"),
             Catch::Contains("cluster.nodes.y.devices = 3\n  --set cluster.nodes=[{"));
  CHECK_THAT(Explain(braces, "cluster.nodes.y.address"),
             Catch::StartsWith("cluster.nodes.y.address = \"\"\n  default\n"));
}

TEST_CASE("devices that do not add up are blamed on the key that was written later") {
  const File file("[[cluster.nodes]]\ndevices = 3\n[[cluster.nodes]]\ndevices = 1\n");
  CHECK(file.Errors() == "no error");
  CHECK_THAT(
      file.Errors({"cluster.ranks=5", "modules.vision.ranks=2-4"}),
      Catch::Contains("--set cluster.ranks=5: cluster.ranks: expected the 3 + 1 = 4 devices of "
                      "cluster.nodes, got 5"));
  CHECK_THAT(file.Errors({"cluster.nodes=[{ devices = 9 }]"}),
             Catch::Contains("cluster.nodes: gives 9 devices, expected cluster.ranks = 4"));
}

TEST_CASE("addresses are distinguished from similar texts") {
  const File file("");
  const auto join = [&](const std::string& text) {
    return file.Errors({"cluster.join='" + text + "'"}) == "no error";
  };
  for (const char* good : {"n0:7420", "10.0.0.1:1", "node-1.example:65535", "[::1]:7420"}) {
    INFO(good);
    CHECK(join(good));
  }
  for (const char* bad : {"n0", ":7420", "n0:", "n0:0", "n0:65536", "n0:7420x", "::1:7420",
                          "[n0]:7420", "a b:7420", "n0:-1", "[]:7420", "http://n0:7420"}) {
    INFO(bad);
    CHECK_FALSE(join(bad));
  }
  const auto range = [&](const std::string& text) {
    return file.Errors({"transport.port_range=" + text}) == "no error";
  };
  CHECK(range("7500-7600"));
  CHECK(range("7500-7500"));
  for (const char* bad : {"7500", "0-5", "7600-7500", "1-65536", "a-b", "1-2-3", "-5", "5-"}) {
    INFO(bad);
    CHECK_FALSE(range(bad));
  }
}

}  // namespace troupe
