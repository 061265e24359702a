// The files of an exported folder: which tensors each has, and which are copied.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/export_plan.hpp"

namespace troupe {

/// Divides tensors into files: those of `source`, unless it is null, if it has tensors of all their
/// names; else into files of at most kMaxExportedFile bytes, in their order.
std::vector<ExportedFile> Divide(std::vector<ExportedTensor> tensors, const WeightsFolder* source);

/// Adds the files next to the weights of `source` that programs read with them, unless a file of
/// that name is there already. `tokenizer`: those of the tokenizer, too.
void AddSideFiles(const std::string& source, bool tokenizer, ExportedFolder& folder);

/// Adds the tokenizer of `source` with `added`, its last the padding. One of SentencePiece is copied
/// as it is.
void AddTokenizer(const std::string& source, const std::vector<AddedToken>& added,
                  ExportedFolder& folder);

}  // namespace troupe
