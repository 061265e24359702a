#include "answers/answerer.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

constexpr std::int64_t kEnd = 0;

/// Counts down from the last token of its prompt to kEnd. Notes what is asked of it.
class Countdown final : public TokenModel {
 public:
  explicit Countdown(std::int64_t context = 1000) : context_(context) {}

  std::int64_t context() const override { return context_; }
  Buffer Begin(const Prompt& prompt) override {
    lengths_.push_back(std::ssize(prompt.tokens));
    most_ = std::max(most_, lengths_.size());
    return Logits({prompt.tokens.back()});
  }
  Buffer Extend(std::span<const std::int64_t> tokens) override {
    REQUIRE(tokens.size() == lengths_.size());
    for (std::int64_t& length : lengths_) CHECK(++length <= context_);
    ++num_extends_;
    return Logits({tokens.begin(), tokens.end()});
  }
  void End(std::int64_t number) override {
    lengths_.at(static_cast<std::size_t>(number)) = lengths_.back();
    lengths_.pop_back();
  }

  std::size_t most() const { return most_; }
  int num_extends() const { return num_extends_; }
  bool empty() const { return lengths_.empty(); }

 private:
  static Buffer Logits(const std::vector<std::int64_t>& tokens) {
    constexpr std::int64_t kVocabulary = 30;
    Buffer logits = Buffer::Zeros({std::ssize(tokens), kVocabulary}, DType::kFloat64);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      logits.as<double>()[static_cast<std::int64_t>(i) * kVocabulary + tokens[i] - 1] = 1.0;
    }
    return logits;
  }

  std::int64_t context_;
  std::vector<std::int64_t> lengths_;
  std::size_t most_ = 0;
  int num_extends_ = 0;
};

/// Token i is letter i; 10 is a space, 11 a line end.
class Letters final : public Tokenizer {
 public:
  std::vector<TextToken> Encode(std::string_view) const override { return {}; }
  std::string Decode(std::span<const std::int64_t> ids) const override {
    std::string text;
    for (const std::int64_t id : ids) {
      text += id == 10 ? ' ' : id == 11 ? '\n' : static_cast<char>('a' + id);
    }
    return text;
  }
  std::optional<std::int64_t> bos() const override { return std::nullopt; }
  std::int64_t eos() const override { return kEnd; }
  std::int64_t pad() const override { return kEnd; }
  std::int64_t placeholder(int) const override { return 99; }
  std::int64_t size() const override { return 30; }
};

std::map<std::size_t, Answer> Answers(Countdown& model, const AnswerSettings& settings,
                                      const std::vector<std::int64_t>& from) {
  std::map<std::size_t, Answer> answers;
  std::size_t next = 0;
  WriteAnswers(
      model, Letters(), settings, from.size(),
      [&](std::size_t i) {
        CHECK(i == next++);
        return Prompt{{1, from[i]}, {}};
      },
      [](std::size_t, const Answer&) {},
      [&](std::size_t i, const Answer& answer) { CHECK(answers.emplace(i, answer).second); });
  CHECK(model.empty());
  return answers;
}

TEST_CASE("every question gets its answer, whatever the batch", "[answers]") {
  const std::vector<std::int64_t> from = {3, 7, 1, 9, 2, 1, 8, 5, 5, 1};
  Countdown model;
  const auto answers =
      Answers(model, {.sampling = {}, .stops = {{kEnd}, ""}, .batch = GENERATE(1, 2, 4, 99)}, from);
  REQUIRE(answers.size() == from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    INFO("question " << i);
    std::vector<std::int64_t> wanted;
    for (std::int64_t token = from[i] - 1; token >= 0; --token) wanted.push_back(token);
    CHECK(answers.at(i).tokens == wanted);
    CHECK(answers.at(i).cause == AnswerCause::kStopped);
    wanted.pop_back();
    CHECK(answers.at(i).text == Letters().Decode(wanted));
  }
}

TEST_CASE("the next question begins as soon as an answer ends", "[answers]") {
  Countdown model;
  // One long answer beside nine short ones: without waiting for each other they take as long as it.
  Answers(model, {.sampling = {}, .stops = {{kEnd}, ""}, .batch = 2},
          {20, 3, 3, 3, 3, 3, 3, 3, 3, 3});
  CHECK(model.most() == 2);
  CHECK(model.num_extends() == 19);
}

TEST_CASE("what ends an answer is said", "[answers]") {
  AnswerSettings settings{.sampling = {}, .stops = {{kEnd}, ""}, .max_new_tokens = 4};
  Countdown model;
  CHECK(Answers(model, settings, {9}).at(0).cause == AnswerCause::kMaxNewTokens);
  CHECK(Answers(model, settings, {9}).at(0).text == "ihgf");
  CHECK(Answers(model, settings, {4}).at(0).cause == AnswerCause::kStopped);
  settings.max_new_tokens = 50;
  Countdown small(6);
  // Two tokens of the prompt, five of the answer: the last is not read any more.
  CHECK(Answers(small, settings, {9}).at(0).cause == AnswerCause::kContext);
  CHECK(Answers(small, settings, {9}).at(0).tokens.size() == 5);
}

TEST_CASE("an answer ends before the text that stops it, without white space", "[answers]") {
  Countdown model;
  AnswerSettings settings{.sampling = {}, .stops = {{kEnd}, "\n"}};
  CHECK(Answers(model, settings, {14}).at(0).text == "nm");
  settings.stops.text = "";
  CHECK(Answers(model, settings, {12}).at(0).text == "jihgfedcb");
}

}  // namespace
}  // namespace troupe
