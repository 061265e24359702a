#pragma once

#include <c10/util/Exception.h>
#include <stdexcept>
#include <string>

namespace troupe {

/// Runs `work`; an error of the library becomes one line, after `who`, instead of a stack trace.
template <class Work>
auto WithShortErrors(const std::string& who, Work work) {
  try {
    return work();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw std::runtime_error(who + ": " + text.substr(0, text.find('\n')));
  }
}

}  // namespace troupe
