// Questions about images, and the files of questions and answers of LLaVA's evaluations:
//   question  {"question_id": 3, "image": "a.jpg", "text": "What is it?"}
//   answer    {"question_id": 3, "prompt": "What is it?", "text": "A cat.", "answer_id": "...",
//              "model_id": "...", "metadata": {}}
// one a line. A question without a placeholder has its images before its text.
#pragma once

#include <string>
#include <vector>

#include "data/rows/llava.hpp"
#include "data/sample.hpp"
#include "modules/token_model.hpp"

namespace troupe {

struct Question {
  std::string id;    ///< JSON: a string or a whole number
  std::string text;  ///< as it was asked
};

/// Question i is row i of `set`.
struct QuestionList {
  LlavaSet set;
  std::vector<Question> questions;
};

/// Reads a file of questions. The images are in `folder`; if that is empty, in that of `file`. Opens
/// no image. Throws DataError with the first few faults.
QuestionList ReadQuestions(const std::string& file, const std::string& folder,
                           const std::vector<RowField>& fields);

/// Returns one question about `images`. Throws std::runtime_error, the reason as one line, if the
/// model reads no images or `text` has another number of placeholders.
QuestionList OneQuestion(const std::string& text, const std::vector<std::string>& images,
                         const std::vector<RowField>& fields);

/// Checks type, size and header of every file of every question, and that every prompt leaves room
/// for an answer. Throws DataError with the first few faults.
void CheckQuestions(const QuestionList& list, const SampleFormat& format);

/// Returns the prompt of question `index`, its items decoded. `encoders` are the names of the modules
/// that read the fields of `format`. Throws DataError for a file that cannot be read, or a prompt
/// that leaves no token of the context for an answer.
Prompt PromptOfQuestion(const QuestionList& list, std::size_t index, const SampleFormat& format,
                        const std::vector<std::string>& encoders);

/// Returns the line of the answer to question `index`, with its line end. `model` is the id of the
/// model.
std::string AnswerLine(const QuestionList& list, std::size_t index, const std::string& answer,
                       const std::string& model);

}  // namespace troupe
