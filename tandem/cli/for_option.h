#pragma once

#include <string>

#include "tandem/core/error.h"

namespace tandem::cli {

/// What `work` gives. What goes wrong in it, such as reading the option's file, is reported with
/// the option.
template <class Work>
auto for_option(const std::string& option, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    throw_error(error.code(), cat(option, ": ", error.what()));
  }
}

}  // namespace tandem::cli
