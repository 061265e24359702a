#include "answers/question.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "data/prepared_sample.hpp"
#include "files/sha256.hpp"
#include "files/strict_json.hpp"
#include "files/text_file.hpp"
#include "layout/mix_bits.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

using nlohmann::json;

/// The first faults of questions, and the number of the others.
class FaultLines {
 public:
  void Add(const std::string& file, const DataFault& fault) {
    constexpr std::size_t kMost = 10;
    if (lines_.size() < kMost) {
      lines_.push_back(FaultLine(file, fault));
    } else {
      ++others_;
    }
  }
  /// Throws DataError if there are any.
  void Require(const std::string& file) {
    if (others_ > 0) lines_.push_back(file + ": and " + Counted(others_, "other fault"));
    if (!lines_.empty()) throw DataError(lines_);
  }

 private:
  std::vector<std::string> lines_;
  std::int64_t others_ = 0;
};

/// By its id, so that the draws of an answer do not depend on the other questions.
std::uint64_t StreamOf(const Question& question) {
  std::uint64_t hash = 0;
  for (const char c : question.id) hash = MixBits(hash ^ static_cast<unsigned char>(c));
  return hash;
}

/// Returns `text`, preceded by one placeholder per file for each field that has none in it.
std::string WithPlaceholders(const std::string& text,
                             const std::vector<std::vector<std::string>>& files,
                             const std::vector<RowField>& fields) {
  std::string before;
  const std::vector<TextPiece> pieces = SplitAtPlaceholders(text, fields);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto is_of_field = [&](const TextPiece& piece) {
      return piece.field == static_cast<int>(i);
    };
    if (std::ranges::any_of(pieces, is_of_field)) continue;
    for (std::size_t file = 0; file < files[i].size(); ++file) {
      before += fields[i].placeholder + "\n";
    }
  }
  return before + text;
}

/// The names in `field` of a question, whatever they are: ReadRow checks them.
std::vector<std::string> NamesIn(const json& question, const std::string& field) {
  const auto found = question.find(field);
  if (found == question.end() || found->is_null()) return {};
  return std::vector<std::string>(found->is_array() ? found->size() : 1);
}

Question ReadQuestion(const json& value, const std::vector<RowField>& fields, LlavaRow& row) {
  Question question;
  const auto id = value.find("question_id");
  if (id == value.end() || !(id->is_string() || id->is_number_integer())) {
    FailReading("question_id: expected a string or a whole number");
  }
  question.id = id->dump();
  row.id = id->is_string() ? id->get<std::string>() : question.id;
  const auto text = value.find("text");
  if (text == value.end() || !text->is_string()) FailReading("text: expected a string");
  question.text = text->get<std::string>();
  const auto reads = [&](const std::string& name) {
    return std::ranges::find(fields, name, &RowField::field) != fields.end();
  };
  const auto image = value.find("image");
  if (image != value.end() && !image->is_null() && !reads("image")) {
    FailReading("image: the model reads no images");
  }
  std::vector<std::vector<std::string>> names;
  for (const RowField& field : fields) names.push_back(NamesIn(value, field.field));
  json conversation = value;
  conversation["id"] = row.id;
  for (const char* const key : {"messages", "caption"}) conversation.erase(key);
  conversation["conversations"] = {
      {{"from", "human"}, {"value", WithPlaceholders(question.text, names, fields)}},
      {{"from", "gpt"}, {"value", ""}}};
  ReadRow(conversation, fields, row);
  row.turns.back().open = true;
  return question;
}

}  // namespace

QuestionList ReadQuestions(const std::string& file, const std::string& folder,
                           const std::vector<RowField>& fields) {
  constexpr int kDepth = 16;
  QuestionList list;
  list.set.file = file;
  list.set.folder = folder;
  constexpr std::size_t kMostBytes = std::size_t{1} << 30U;
  const TextFile text_file = ReadTextFile(file, kMostBytes, "expected at most 1 GiB of questions");
  if (!text_file.failure.empty()) throw DataError(file + ": " + text_file.failure);
  std::istringstream stream(text_file.text);
  FaultLines faults;
  std::int64_t line = 0;
  std::int64_t index = 0;
  for (std::string text; std::getline(stream, text);) {
    ++line;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    LlavaRow row;
    row.index = index++;
    row.line = line;
    try {
      list.questions.push_back(
          ReadQuestion(ParseStrictJson(text, "the question", kDepth), fields, row));
      list.set.rows.push_back(std::move(row));
    } catch (const std::runtime_error& error) {
      faults.Add(file, row.Fault(FaultKind::kRow, error.what()));
    }
  }
  faults.Require(file);
  if (list.questions.empty()) throw DataError(file + ": expected a question a line, found none");
  return list;
}

QuestionList OneQuestion(const std::string& text, const std::vector<std::string>& images,
                         const std::vector<RowField>& fields) {
  QuestionList list;
  list.questions.push_back({"0", text});
  LlavaRow row;
  row.files.resize(fields.size());
  const auto reads_images = std::ranges::find(fields, "image", &RowField::word);
  if (!images.empty()) {
    if (reads_images == fields.end()) throw std::runtime_error("the model reads no images");
    row.files[static_cast<std::size_t>(reads_images - fields.begin())] = images;
  }
  const std::string asked = WithPlaceholders(text, row.files, fields);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto pieces = SplitAtPlaceholders(asked, fields);
    const auto count = std::ranges::count(pieces, static_cast<int>(i), &TextPiece::field);
    if (count == std::ssize(row.files[i])) continue;
    throw std::runtime_error("expected as many " + fields[i].word + "s as the prompt has " +
                             JsonText(fields[i].placeholder) + ", got " +
                             std::to_string(row.files[i].size()) + " and " + std::to_string(count));
  }
  row.turns = {{.answer = false, .text = asked}, {.answer = true, .text = "", .open = true}};
  list.set.rows.push_back(std::move(row));
  return list;
}

/// Builds the sample of a question. Throws FaultError if it leaves no room for an answer.
static Sample SampleOfQuestion(const QuestionList& list, const LlavaRow& row,
                               const SampleFormat& format) {
  Sample sample = BuildSample(list.set, row, format);
  if (sample.num_uncut_tokens < format.context) return sample;
  throw FaultError(
      list.set.file,
      row.Fault(FaultKind::kContext, "expected fewer than " + std::to_string(format.context) +
                                         " tokens, the context of the model, got " +
                                         std::to_string(sample.num_uncut_tokens)));
}

void CheckQuestions(const QuestionList& list, const SampleFormat& format) {
  FaultLines faults;
  for (const LlavaRow& row : list.set.rows) {
    for (std::size_t field = 0; field < row.files.size(); ++field) {
      for (const std::string& file : row.files[field]) {
        try {
          format.items[field].preprocessor->Check(row.ItemOf(list.set, file), /*decode=*/false);
        } catch (const std::runtime_error& error) {
          faults.Add(list.set.file, row.Fault(FaultKind::kItem, error.what()));
        }
      }
    }
  }
  faults.Require(list.set.file);
  for (const LlavaRow& row : list.set.rows) {
    try {
      SampleOfQuestion(list, row, format);
    } catch (const FaultError& error) {
      faults.Add(list.set.file, error.fault());
    }
  }
  faults.Require(list.set.file);
}

Prompt PromptOfQuestion(const QuestionList& list, std::size_t index, const SampleFormat& format,
                        const std::vector<std::string>& encoders) {
  const LlavaRow& row = list.set.rows[index];
  Sample sample = SampleOfQuestion(list, row, format);
  Prompt prompt;
  prompt.stream = StreamOf(list.questions[index]);
  prompt.tokens = std::move(sample.tokens);
  for (std::size_t field = 0; field < encoders.size(); ++field) {
    if (row.files[field].empty()) continue;
    const auto failed = [&](const std::runtime_error& error, bool) {
      throw FaultError(list.set.file, row.Fault(FaultKind::kItem, error.what()));
    };
    std::vector<PreparedItem> items;
    for (const std::string& file : row.files[field]) {
      items.push_back(PrepareItem(format.items[field], row.ItemOf(list.set, file), failed));
    }
    prompt.items.push_back({encoders[field], Finished(items, format.items[field]),
                            std::move(sample.positions[field]), std::move(sample.newlines[field])});
  }
  return prompt;
}

std::string AnswerLine(const QuestionList& list, std::size_t index, const std::string& answer,
                       const std::string& model) {
  constexpr std::size_t kIdLength = 22;  // of the ids that LLaVA draws
  const Question& question = list.questions[index];
  const std::string place = std::to_string(index);
  Sha256 sum;
  for (const std::string* part : {&model, &place, &question.id, &question.text, &answer}) {
    sum.Update(std::as_bytes(std::span(part->c_str(), part->size() + 1)));
  }
  nlohmann::ordered_json line;
  line["question_id"] = json::parse(question.id);
  line["prompt"] = question.text;
  line["text"] = answer;
  line["answer_id"] = sum.Hex().substr(0, kIdLength);
  line["model_id"] = model;
  line["metadata"] = json::object();
  return line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace troupe
