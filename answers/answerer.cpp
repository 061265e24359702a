#include "answers/answerer.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "data/text/prompt.hpp"

namespace troupe {
namespace {

/// An answer that is being written: sequence i of the model is that of writer i.
struct Writer {
  std::size_t question = 0;
  std::uint64_t stream = 0;
  std::int64_t num_tokens = 0;  ///< of prompt and answer
  Answer answer;
  bool done = false;
};

std::span<const double> RowOf(const Buffer& logits, std::size_t row) {
  const auto width = static_cast<std::size_t>(logits.shape().back());
  return {logits.as<double>() + row * width, width};
}

class Answerer {
 public:
  Answerer(TokenModel& model, const Tokenizer& tokenizer, const AnswerSettings& settings)
      : model_(model), tokenizer_(tokenizer), settings_(settings) {}

  std::size_t num_writers() const { return writers_.size(); }

  void Begin(std::size_t question, const Prompt& prompt) {
    Writer& writer = writers_.emplace_back();
    writer.question = question;
    writer.stream = prompt.stream;
    writer.num_tokens = std::ssize(prompt.tokens);
    Append(writer, RowOf(model_.Begin(prompt), 0));
  }

  void Extend() {
    std::vector<std::int64_t> tokens;
    for (const Writer& writer : writers_) tokens.push_back(writer.answer.tokens.back());
    const Buffer logits = model_.Extend(tokens);
    for (std::size_t i = 0; i < writers_.size(); ++i) Append(writers_[i], RowOf(logits, i));
  }

  template <class Action>
  void ForEach(const Action& action) const {
    for (const Writer& writer : writers_) action(writer.question, writer.answer);
  }

  /// Removes the answers that have ended, and passes each to `finished`.
  template <class Action>
  void RemoveDone(const Action& finished) {
    for (std::size_t i = writers_.size(); i-- > 0;) {
      if (!writers_[i].done) continue;
      const Writer done = std::exchange(writers_[i], writers_.back());
      writers_.pop_back();
      model_.End(static_cast<std::int64_t>(i));
      finished(done.question, done.answer);
    }
  }

 private:
  void Append(Writer& writer, std::span<const double> logits) {
    Answer& answer = writer.answer;
    answer.tokens.push_back(
        ChooseToken(logits, settings_.sampling, writer.stream, answer.tokens.size()));
    ++writer.num_tokens;
    const AnswerStops& stops = settings_.stops;
    std::span<const std::int64_t> tokens = answer.tokens;
    const bool stopped = std::ranges::find(stops.tokens, tokens.back()) != stops.tokens.end();
    if (stopped) tokens = tokens.first(tokens.size() - 1);
    std::string text = tokenizer_.Decode(tokens);
    const std::size_t end = stops.text.empty() ? text.npos : text.find(stops.text);
    if (end != text.npos) text.resize(end);
    answer.text = Stripped(text);
    writer.done = true;
    if (stopped || end != text.npos) {
      answer.cause = AnswerCause::kStopped;
    } else if (std::ssize(answer.tokens) >= settings_.max_new_tokens) {
      answer.cause = AnswerCause::kMaxNewTokens;
    } else if (writer.num_tokens > model_.context()) {
      answer.cause = AnswerCause::kContext;
    } else {
      writer.done = false;
    }
  }

  TokenModel& model_;
  const Tokenizer& tokenizer_;
  const AnswerSettings& settings_;
  std::vector<Writer> writers_;
};

}  // namespace

void WriteAnswers(TokenModel& model, const Tokenizer& tokenizer, const AnswerSettings& settings,
                  std::size_t count, const std::function<Prompt(std::size_t question)>& prompt_of,
                  const std::function<void(std::size_t question, const Answer& answer)>& written,
                  const std::function<void(std::size_t question, const Answer& answer)>& finished) {
  Answerer answerer(model, tokenizer, settings);
  std::size_t next = 0;
  const auto has_room = [&] {
    return next < count && std::cmp_less(answerer.num_writers(), settings.batch);
  };
  while (next < count || answerer.num_writers() > 0) {
    while (has_room()) {
      answerer.Begin(next, prompt_of(next));
      ++next;
    }
    answerer.ForEach(written);
    answerer.RemoveDone(finished);  // the first token may end an answer
    if (answerer.num_writers() > 0 && !has_room()) answerer.Extend();
  }
}

}  // namespace troupe
