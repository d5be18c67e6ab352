#include "tandem/fs/stale_files.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/paths.h"

namespace tandem::fs {
namespace {

namespace files = std::filesystem;

constexpr auto kOld = std::chrono::hours(24);

// Identifies the running system and its process namespace; empty if unknown.
std::string make_machine() {
  std::string text;
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::getline(boot, text);
  char space[64];
  const ssize_t size = ::readlink("/proc/self/ns/pid", space, sizeof space);
  if (text.empty() || size <= 0) return "";
  text.append(space, static_cast<std::size_t>(size));
  std::string digits(8, '0');
  std::uint32_t sum = crc32c(text);
  for (char& digit : digits) {
    digit = "0123456789abcdef"[sum & 15];
    sum >>= 4;
  }
  return digits;
}

const std::string& machine() {
  static const NeverDestroyed<std::string> machine(make_machine);
  return *machine;
}

// The next part of a name, before a dot.
std::string_view take_part(std::string_view& name) {
  const std::size_t dot = name.find('.');
  const std::string_view part = name.substr(0, dot);
  name = dot == std::string_view::npos ? "" : name.substr(dot + 1);
  return part;
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_gone(std::string_view process) {
  long number = 0;
  const auto [end, error] =
      std::from_chars(process.data(), process.data() + process.size(), number);
  if (error != std::errc() || number <= 0) return false;
  return ::kill(static_cast<pid_t>(number), 0) != 0 && errno == ESRCH;
}

bool is_old(const files::path& path) {
  std::error_code error;
  const auto now = files::file_time_type::clock::now();
  const auto recent = [&](const files::path& at) {
    const auto written = files::last_write_time(at, error);
    return error || now - written < kOld;
  };
  if (recent(path)) return false;
  if (!files::is_directory(path, error)) return !error;
  for (files::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (recent(at->path())) return false;
  }
  return !error;
}

// `rest` is what follows the name of the complete file: "MACHINE.PROCESS.NUMBER.tmp", the machine
// left out where unknown.
bool is_stale(std::string_view rest, const files::path& path) {
  std::string_view first = take_part(rest), process = first, from;
  std::string_view number = take_part(rest);
  if (rest != "tmp") {
    from = first;
    process = number;
    number = take_part(rest);
  }
  if (rest != "tmp" || !is_number(process) || !is_number(number)) return false;
  if (!from.empty() && from == machine()) return is_gone(process);
  return is_old(path);
}

}  // namespace

std::string unfinished_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  const std::string& on = machine();
  return cat(path, on.empty() ? "" : ".", on, ".", ::getpid(), ".", counter.fetch_add(1), ".tmp");
}

void remove_stale_files(const std::string& path) noexcept {
  try {
    if (!is_local(path)) return;
    const files::path target(without_file_scheme(file_system_of(path).follow_links(path)));
    const files::path folder = target.has_parent_path() ? target.parent_path() : files::path(".");
    const std::string begin = target.filename().string() + ".";
    std::error_code error;
    for (files::directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (!name.starts_with(begin)) continue;
      if (!is_stale(std::string_view(name).substr(begin.size()), at->path())) continue;
      std::error_code ignored;
      files::remove_all(at->path(), ignored);
    }
  } catch (...) {
    // They belong to no process and do no harm.
  }
}

}  // namespace tandem::fs
