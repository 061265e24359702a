#pragma once

#include <string>
#include <vector>

namespace troupe {

/// Adds the kind "audio" (audio_kind.cpp) to this program. Before any configuration is read.
void AddAudioKind();

/// The words of all kinds that have a body in modules/torch.
std::vector<std::string> KindsWithBody();

/// A file of its field with so many frames; no two numbers give the same.
std::string AudioFile(int number, int frames);

}  // namespace troupe
