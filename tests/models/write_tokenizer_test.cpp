#include "models/write_tokenizer.hpp"

#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

constexpr const char* kTokenizer = R"({
  "version": "1.0",
  "added_tokens": [{"id": 2, "content": "</s>", "special": true}],
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "</s>": 2, "ab": 3}, "merges": []}})";

TEST_CASE("tokens beyond a tokenizer's own are added to it, and no others") {
  const auto json = nlohmann::json::parse(
      WithAddedTokens(kTokenizer, {{4, "<image>"}, {2, "</s>"}, {5, "<pad>"}}));
  REQUIRE(json["added_tokens"].size() == 3);
  CHECK(json["added_tokens"][1]["content"] == "<image>");
  CHECK(json["added_tokens"][1]["id"] == 4);
  CHECK(json["added_tokens"][1]["special"] == true);
  CHECK(json["added_tokens"][2]["content"] == "<pad>");
  CHECK(json["model"] == nlohmann::json::parse(kTokenizer)["model"]);
}

TEST_CASE("a tokenizer keeps the padding that it states") {
  CHECK(WithPadToken(R"({"pad_token": "x"})", "<pad>") == R"({"pad_token": "x"})");
  for (const char* none : {R"({"eos_token": "</s>"})", R"({"pad_token": null})"}) {
    CHECK(nlohmann::json::parse(WithPadToken(none, "<pad>"))["pad_token"] == "<pad>");
  }
  CHECK_THROWS(WithPadToken("[", "<pad>"));
  CHECK_THROWS(WithAddedTokens(R"({"added_tokens": 3})", {}));
}

}  // namespace
}  // namespace troupe
