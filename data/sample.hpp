// One row of a data set as the language model sees it: the parts of its prompt format
// (data/text/prompt.hpp) as tokens. Every placeholder in the text becomes one placeholder token of its
// encoder per row that the encoder emits for the item. Those rows replace the embeddings of the
// tokens. Of an image that is cut into tiles some rows are left out, and newline rows are added
// (data/images/tiles.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "configs/config.hpp"
#include "data/images/preprocessor.hpp"
#include "data/rows/llava.hpp"
#include "data/text/prompt.hpp"
#include "data/text/tokenizer.hpp"

namespace troupe {

/// How the files of a field become items.
struct ItemFormat {
  /// Returns where the rows go that the encoder emits for the item in a file.
  std::function<ItemPlaces(const ItemFile& file)> places;
  std::shared_ptr<const Preprocessor> preprocessor = nullptr;
  Shape row_shape = {};  ///< Field::row_shape()
};

/// The settings that convert rows to samples.
struct SampleFormat {
  std::shared_ptr<const Tokenizer> tokenizer = nullptr;
  std::vector<RowField> fields;   ///< by encoder, in the order of the config file
  std::vector<ItemFormat> items;  ///< by encoder
  std::int64_t context = 0;       ///< maximum number of tokens in a sample
  PromptKind prompt = PromptKind::kLines;
};

/// A sample of T tokens.
struct Sample {
  std::vector<std::int64_t> tokens;   ///< [T]
  std::vector<std::int64_t> labels;   ///< [T]: the next token where the prompt format learns it,
                                      ///< else kNoLabel
  std::vector<std::uint8_t> content;  ///< [T]: the label is part of a content word
  /// By encoder: where its rows go, in order; -1: left out.
  std::vector<std::vector<std::int64_t>> positions;
  std::vector<std::vector<std::int64_t>> newlines;  ///< by encoder: where its newline rows go
  std::vector<std::int64_t> lengths;                ///< by encoder: total length of its items
  std::int64_t num_uncut_tokens = 0;                ///< before its end was cut to fit the context

  std::int64_t num_labels() const;  ///< labels that are not kNoLabel
  bool cut() const { return num_uncut_tokens > std::ssize(tokens); }
};

/// Cuts off text beyond the context. Throws FaultError if that would cut an item, if the length of a
/// file cannot be read, if the prompt format cannot express the row, or if the tokenizer gives up on
/// its text.
Sample BuildSample(const RowOrigin& origin, const LlavaRow& row, const SampleFormat& format);

/// Returns a padding sample: one pad token, no item, no label.
Sample EmptySample(const SampleFormat& format);

/// Returns the modules that read a field, in the order of the config file.
std::vector<const ModuleConfig*> DataEncoders(const Config& config);

/// Throws DataError if a vocabulary is too small for the tokenizer, if its file cannot be used, or if
/// it lacks a special token of the prompt format.
SampleFormat FormatOf(const Config& config);

/// Returns a format for lists read without a configuration: images in the field "image",
/// placeholder "<image>", no rows, and a context that no sample exceeds.
SampleFormat PlainFormat();

/// One flag per byte of `text`. A word is a run of ASCII letters and digits and of the bytes of
/// other UTF-8 characters; it is a content word unless it is one of
/// a an and are at by for from in is it its of on or the there to with this that (in any case).
std::vector<std::uint8_t> ContentBytes(std::string_view text);

}  // namespace troupe
