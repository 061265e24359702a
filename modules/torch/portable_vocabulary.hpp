// Both ends of a language model of the library's operations, for any device and type.
#pragma once

#include <torch/types.h>

#include "modules/torch/vocabulary.hpp"

namespace troupe {

/// As Embed.
at::Tensor PortableEmbed(const at::Tensor& tokens, const VocabularyPart& part,
                         const TensorGroupPtr& group);

/// As VocabularyLoss.
at::Tensor PortableLoss(const at::Tensor& x, const VocabularyPart& part, const at::Tensor& labels,
                        const TensorGroupPtr& group, Predictions& predictions);

}  // namespace troupe
