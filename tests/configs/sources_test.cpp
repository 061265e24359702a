// [[data.sources]].
#include <catch2/catch.hpp>

#include "tests/configs/base.hpp"

namespace troupe {
namespace {

std::vector<std::string> With(const std::string& sources) {
  return {"data.train=''", "data.sources=" + sources};
}

TEST_CASE("training samples may come from several sources") {
  const LoadedConfig loaded =
      LoadConfig(kBase, With("[{ path = 's/{0..9}.tar', weight = 0.7 }, { path = 'b.json', format "
                             "= 'llava', weight = 3.0 }]"));
  const DataConfig& data = loaded.config.data;
  CHECK(data.sources ==
        std::vector<DataSource>{{"s/{0..9}.tar", "auto", 0.7}, {"b.json", "llava", 3.0}});
  CHECK(data.train_paths() == std::vector<std::string>{"s/{0..9}.tar", "b.json"});
  CHECK(data.train_name() == "s/{0..9}.tar, b.json");
  CHECK_THAT(loaded.resolved_toml,
             Catch::Contains("s/{0..9}.tar\"\nformat = \"auto\"\nweight = 0.7\n\n"
                             "[[data.sources]]\npath = \"") &&
                 Catch::Contains("b.json\"\nformat = \"llava\"\nweight = 3.0\n\n"));
  CHECK_THAT(Explain(loaded, "data.sources.0.weight"),
             Catch::StartsWith("data.sources.0.weight = 0.7\n"));
  CHECK(LoadConfig(kBase).config.data.train_paths() ==
        std::vector<std::string>{LoadConfig(kBase).config.data.train});
}

TEST_CASE("sources that cannot be meant are refused with their key") {
  using Catch::Contains;
  const auto errors = [](const std::string& sources) { return ErrorsOf(With(sources)); };
  CHECK_THAT(errors("[{ weight = 1 }]"), Contains("data.sources.0.path: missing"));
  CHECK_THAT(errors("[{ path = 'a.json', weight = 0 }]"), Contains("data.sources.0.weight: "));
  CHECK_THAT(errors("[{ path = 'a.json', wieght = 1 }]"), Contains("weight"));
  CHECK_THAT(errors("7"), Contains("data.sources: expected [[data.sources]] tables"));
  CHECK_THAT(errors("[7]"), Contains("data.sources: expected [[data.sources]] tables"));
  CHECK_THAT(ErrorsOf({"data.sources=[{ path = 'a.json' }]"}),
             Contains("expected one of data.train and [[data.sources]], got both"));
  CHECK_THAT(errors("[{ path = 'a.json', weight = 1 }, { path = 'b.json' }]"),
             Contains("expected a weight of every source or of none, got 1 of 2"));
  CHECK_THAT(errors("[{ path = 'a.json', weight = 1 }, { path = 'b.json', weight = 0 }]"),
             Contains("data.sources.1.weight: ") && !Contains("a weight of every source"));
  CHECK_THAT(errors("[{ path = 'a.json', weight = 1e308 }, { path = 'b.json', weight = 1e308 }]"),
             Contains("data.sources: expected weights with a finite sum"));
  CHECK_THAT(ErrorsOf({"data.train=a.csv"}), Contains("data.train: "));
  CHECK_THAT(ErrorsOf({"data.format=webdataset"}), Contains("data.format: "));
  CHECK_THAT(errors("[{ path = 'a.tar', format = 'llava' }]"), Contains("data.sources.0.format: "));
}

}  // namespace
}  // namespace troupe
