// Writes answers, several at once: as soon as one ends, the next question takes its place.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "answers/sampling.hpp"
#include "data/text/tokenizer.hpp"
#include "modules/token_model.hpp"

namespace troupe {

/// What ends an answer; none of it is part of the answer.
struct AnswerStops {
  std::vector<std::int64_t> tokens;  ///< such as eos
  std::string text = {};             ///< "": none
};

struct AnswerSettings {
  Sampling sampling;
  AnswerStops stops;
  std::int64_t max_new_tokens = 512;
  std::int64_t batch = 8;  ///< answers at once
};

/// Why an answer ended.
enum class AnswerCause { kStopped, kMaxNewTokens, kContext };

struct Answer {
  std::vector<std::int64_t> tokens;  ///< with the one that ended it
  std::string text;                  ///< without white space at its ends
  AnswerCause cause = AnswerCause::kStopped;
};

/// Answers `count` questions. Exceptions of the functions pass through.
///   prompt_of  returns the prompt of a question; called once for each, in order
///   written    called after each token with the answer so far, which may still end otherwise
///   finished   called once for each question, in the order in which answers end
void WriteAnswers(TokenModel& model, const Tokenizer& tokenizer, const AnswerSettings& settings,
                  std::size_t count, const std::function<Prompt(std::size_t question)>& prompt_of,
                  const std::function<void(std::size_t question, const Answer& answer)>& written,
                  const std::function<void(std::size_t question, const Answer& answer)>& finished);

}  // namespace troupe
