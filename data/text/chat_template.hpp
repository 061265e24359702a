// Recognises the chat templates of published models.
#pragma once

#include <optional>
#include <string>

#include "data/text/prompt.hpp"

namespace troupe {

/// Returns the format in which a template writes its conversations, if the template is known. Known
/// are templates to the byte, by their SHA-256: they are programs, which only Jinja can read.
std::optional<PromptKind> PromptOfTemplate(const std::string& text);

/// Returns the format of the folder's chat template. Throws std::runtime_error, a line that names
/// the words of data.prompt, if the folder has none or an unknown one.
PromptKind PromptOfFolder(const std::string& folder);

}  // namespace troupe
