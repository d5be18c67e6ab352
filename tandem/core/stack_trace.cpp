#include "tandem/core/stack_trace.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include <absl/debugging/stacktrace.h>

#include "tandem/core/error.h"

namespace tandem {
namespace {

std::string demangle(const char* symbol) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : symbol;
}

bool is_ours(std::string_view function) {
  return function.starts_with("tandem::") || function.find(" tandem::") != std::string_view::npos ||
         function.starts_with("std::");
}

}  // namespace

StackTrace StackTrace::capture(int depth) {
  StackTrace trace;
  trace.frames_.resize(static_cast<std::size_t>(depth));
  const int found = absl::GetStackTrace(trace.frames_.data(), depth, /*skip_count=*/1);
  trace.frames_.resize(static_cast<std::size_t>(found));
  return trace;
}

std::string StackTrace::to_string(int lines) const {
  std::string text;
  for (void* frame : frames_) {
    if (lines == 0) break;
    Dl_info info{};
    // The return address belongs to the instruction after the call.
    void* call = static_cast<char*>(frame) - 1;
    if (dladdr(call, &info) == 0 || info.dli_fname == nullptr) continue;
    const std::string function = info.dli_sname ? demangle(info.dli_sname) : "";
    if (is_ours(function)) continue;
    const std::string_view path = info.dli_fname;
    const std::string_view file = path.substr(path.rfind('/') + 1);
    if (file.starts_with("libtandem") || file.starts_with("libc.so")) continue;
    if (!text.empty()) text += '\n';
    const auto offset =
        reinterpret_cast<std::uintptr_t>(call) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    std::ostringstream place;
    place << file << "+0x" << std::hex << offset;
    text += cat("    at ", function.empty() ? "?" : function, " (", place.str(), ")");
    --lines;
  }
  return text;
}

}  // namespace tandem
