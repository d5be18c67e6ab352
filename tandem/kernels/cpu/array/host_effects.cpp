// Text to the terminal, files, the clock, and checks.

#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/io_scope.h"
#include "tandem/fs/paths.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/summarize.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

void assert_true(KernelContext& c) {
  const Array& condition = c.input(0);
  if (condition.rank() != 0) {
    throw InvalidArgumentError(cat("In[0] should be a scalar: ", condition.shape()));
  }
  if (*condition.data<bool>()) return;
  std::string message = "assertion failed: ";
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (i > 1) message += ' ';
    message += "[" + summarize_flat(c.input(i), c.attr<std::int64_t>("summarize")) + "]";
  }
  throw InvalidArgumentError(message);
}

void print(KernelContext& c) {
  c.set_output(0, c.input(0));
  const auto first = c.attr<std::int64_t>("first_n");
  {
    NodeState& state = c.state();
    std::lock_guard lock(state.mutex);
    if (first >= 0 && state.counter++ >= static_cast<std::uint64_t>(first)) return;
  }
  std::string text = c.attr<std::string>("message");
  for (int i = 1; i < c.num_inputs(); ++i) {
    text += "[" + summarize_flat(c.input(i), c.attr<std::int64_t>("summarize")) + "]";
  }
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::optional<LogLevel> log_stream(std::string_view stream) {
  if (stream == "log(info)") return LogLevel::kInfo;
  if (stream == "log(warning)") return LogLevel::kWarning;
  if (stream == "log(error)") return LogLevel::kError;
  return std::nullopt;
}

void print_v2(KernelContext& c) {
  if (c.input(0).rank() != 0) {
    throw InvalidArgumentError(cat("Input is expected to be scalar, but got ", c.input(0).shape()));
  }
  const std::string text = *c.input(0).data<std::string>() + c.attr<std::string>("end");
  const auto& stream = c.attr<std::string>("output_stream");
  constexpr std::string_view kFile = "file://";
  if (stream.starts_with(kFile)) {
    std::ofstream file(stream.substr(kFile.size()), std::ios::app | std::ios::binary);
    file << text;
    if (!file.flush()) throw NotFoundError(cat(stream, " cannot be written to."));
    return;
  }
  const std::optional<LogLevel> log = log_stream(stream);
  if (stream != "stdout" && stream != "stderr" && !log) {
    throw InvalidArgumentError(cat("Unknown output stream: ", stream,
                                   ", it must be stdout, stderr, log(info), log(warning), "
                                   "log(error) or begin with file://"));
  }
  if (log && *log < log_level()) return;
  std::FILE* to = stream == "stdout" ? stdout : stderr;
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

void timestamp(KernelContext& c) {
  using Seconds = std::chrono::duration<double>;
  *c.allocate_output(0, Shape{}).data<double>() =
      Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

void check_numerics(KernelContext& c) {
  const Array& x = c.input(0);
  bool nan = false, below = false, above = false;
  with_floating(x.dtype(), [&]<class T>() {
    for (const T& element : x.values<T>()) {
      const auto value = widen(element);
      nan = nan || value != value;
      if (value == value && value - value != 0) (value < 0 ? below : above) = true;
    }
  });
  if (nan || below || above) {
    std::string what;
    const auto add = [&](bool there, const char* name) {
      if (there) what += (what.empty() ? "" : ", ") + std::string(name);
    };
    add(below, "-Inf");
    add(above, "+Inf");
    add(nan, "NaN");
    throw InvalidArgumentError(
        cat(c.attr<std::string>("message"), " : Tensor had ", what, " values"));
  }
  c.set_output(0, x);
}

void identity(KernelContext& c) { c.set_output(0, c.input(0)); }
void deep_copy(KernelContext& c) { c.set_output(0, c.input(0).clone()); }

// ---- Files ----

const std::string& text_of(const KernelContext& c, int i, const char* name) {
  if (c.input(i).rank() != 0) {
    throw InvalidArgumentError(
        cat("Input ", name, " tensor must be scalar, but had shape: ", c.input(i).shape()));
  }
  return *c.input(i).data<std::string>();
}

void read_file(KernelContext& c) {
  const fs::IoScope scope(c.cancellation());
  std::string bytes = fs::read_file(text_of(c, 0, "filename"));
  *c.allocate_output(0, Shape{}).data<std::string>() = std::move(bytes);
}

void write_file(KernelContext& c) {
  const fs::IoScope scope(c.cancellation());
  const std::string& path = text_of(c, 0, "filename");
  const std::string& bytes = text_of(c, 1, "contents");
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    fs::file_system_of(path).make_directories(path.substr(0, slash));
  }
  fs::write_file(path, bytes);
}

bool is_pattern(std::string_view text) {
  return text.find_first_of("*?[\\") != std::string_view::npos;
}

// What `pattern`, from its first folder on, matches below `base` (empty, or ending in '/'). A
// folder that may not be read is an error where the pattern names it; where wildcards led to it, it
// out, as in TensorFlow.
void match_below(const std::string& base, bool named, std::string_view pattern,
                 std::vector<std::string>& found) {
  const std::size_t slash = pattern.find('/');
  const std::string part(pattern.substr(0, slash));
  const bool name_given = named && !is_pattern(part);
  const auto try_to = [&](const auto& look) {
    try {
      look();
    } catch (const PermissionDeniedError& error) {
      if (named) throw;
      log(LogLevel::kWarning, cat(error.what(), ". Files there are left out."));
    } catch (const Error&) {  // what is not there, or no folder, has nothing to match
      if (name_given) throw;
    }
  };
  const bool last = slash == std::string_view::npos;
  const auto go_on = [&](const std::string& name) {
    std::string path = base + name;
    if (last) {
      // A slash at the end of a pattern is kept only where there are no wildcards, as in
      // TensorFlow.
      if (name.empty() && !named && path.size() > 1) path.pop_back();
      try_to([&] {
        if (!path.empty() && fs::exists(path)) found.push_back(path);
      });
    } else {
      match_below(path + "/", name_given, pattern.substr(slash + 1), found);
    }
  };
  if (!is_pattern(part)) return go_on(part);
  const std::string folder = base.empty() ? "." : base;
  std::vector<std::string> names;
  // A store then lists no others.
  const std::string beginning = part.substr(0, part.find_first_of("*?[\\"));
  try_to([&] { names = fs::file_system_of(folder).list_prefix(folder, beginning); });
  for (const std::string& name : names) {
    if (fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0) go_on(name);
  }
}

void match(const std::string& pattern, std::vector<std::string>& found) {
  const std::string_view scheme = fs::scheme_of(pattern);
  if (scheme == "http" || scheme == "https") {
    // A URL's '?' begins a query; web servers have no lists.
    if (fs::exists(pattern)) found.push_back(pattern);
    return;
  }
  const std::size_t begin = scheme.empty() ? 0 : scheme.size() + 3;
  match_below(pattern.substr(0, begin), true, std::string_view(pattern).substr(begin), found);
}

void matching_files(KernelContext& c) {
  const Array& patterns = c.input(0);
  if (patterns.rank() > 1) {
    throw InvalidArgumentError(
        cat("Input patterns tensor must be scalar or vector, but had shape: ", patterns.shape()));
  }
  const fs::IoScope scope(c.cancellation());
  std::vector<std::string> found;
  for (const std::string& pattern : patterns.values<std::string>()) match(pattern, found);
  std::sort(found.begin(), found.end());
  Array& out = c.allocate_output(0, Shape{static_cast<std::int64_t>(found.size())});
  std::move(found.begin(), found.end(), out.data<std::string>());
}

constexpr TypeConstraint kFloats{"T", kFloatTypes};
const KernelRegistration kAssert{{.op = "Assert", .run = assert_true}};
const KernelRegistration kPrint{{.op = "Print", .run = print}};
const KernelRegistration kPrintV2{{.op = "PrintV2", .run = print_v2}};
const KernelRegistration kTimestamp{{.op = "Timestamp", .run = timestamp}};
const KernelRegistration kCheck{
    {.op = "CheckNumericsV2", .types = {kFloats}, .run = check_numerics}};
const KernelRegistration kGuarantee{{.op = "GuaranteeConst", .run = identity}};
const KernelRegistration kDeepCopy{{.op = "DeepCopy", .run = deep_copy}};
const KernelRegistration kReadFile{{.op = "ReadFile", .run = read_file}};
const KernelRegistration kWriteFile{{.op = "WriteFile", .run = write_file}};
const KernelRegistration kMatching{{.op = "MatchingFiles", .run = matching_files}};

}  // namespace
}  // namespace tandem::cpu
