#include "tandem/kernels/cpu/support/choice_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/core/version.h"
#include "tandem/kernels/cpu/lapack/blas.h"
#include "tandem/kernels/cpu/onednn/support.h"

namespace tandem::cpu {
namespace {

constexpr std::string_view kFormat = "tandem kernel choices 1";

// The text before the next `separator`, which is taken off `rest` with it.
std::string_view take(std::string_view& rest, char separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return part;
}

template <class Number>
Number parse(std::string_view text, std::size_t line) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw InvalidArgumentError(cat("line ", line, ": \"", text, "\" is not a number"));
  return value;
}

std::string seconds_text(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", seconds);
  return text;
}

// What /proc/cpuinfo says of the first processor.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, name;
  while (std::getline(file, line) && !line.empty()) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    if (key != "model name" && key != "cpu family" && key != "model" && key != "stepping" &&
        key != "CPU implementer" && key != "CPU part" && key != "CPU variant") {
      continue;
    }
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    if (begin != std::string::npos) name += cat(name.empty() ? "" : " / ", line.substr(begin));
  }
  return name.empty() ? "unknown processor" : name;
}

}  // namespace

std::string write_choices(const MeasuredChoices& choices, std::string_view machine) {
  std::string text = cat(kFormat, "\nmachine\t", machine, '\n');
  for (const auto& [key, choice] : choices) {
    text += cat(key.first, '\t', key.second, '\t', choice.chosen);
    for (const auto& [name, seconds] : choice.times)
      text += cat('\t', name, '\t', seconds_text(seconds));
    text += '\n';
  }
  return text + cat("end\t", choices.size(), '\n');
}

MeasuredChoices read_choices(std::string_view text, std::string_view machine) {
  if (const std::string_view first = take(text, '\n'); first != kFormat)
    throw InvalidArgumentError(cat("the first line is not \"", kFormat, '"'));
  std::string_view second = take(text, '\n');
  if (take(second, '\t') != "machine" || second != machine)
    throw InvalidArgumentError("it is of another machine");
  MeasuredChoices choices;
  for (std::size_t number = 3; !text.empty(); ++number) {
    std::string_view line = take(text, '\n');
    const std::string problem(take(line, '\t'));
    if (problem == "end") {
      if (!text.empty() || parse<std::size_t>(line, number) != choices.size())
        throw InvalidArgumentError(cat("line ", number, ": the number of entries is not right"));
      return choices;
    }
    const int threads = parse<int>(take(line, '\t'), number);
    MeasuredChoice choice;
    choice.chosen = take(line, '\t');
    bool known = false;
    while (!line.empty()) {
      const std::string name(take(line, '\t'));
      const double seconds = parse<double>(take(line, '\t'), number);
      if (!std::isfinite(seconds))
        throw InvalidArgumentError(cat("line ", number, ": a time is not finite"));
      known |= name == choice.chosen && seconds >= 0;
      choice.times.emplace_back(name, seconds);
    }
    if (problem.empty() || !known)
      throw InvalidArgumentError(cat("line ", number, ": the choice is none of those measured"));
    choices[{problem, threads}] = std::move(choice);
  }
  throw InvalidArgumentError("its end is missing");
}

const std::string& machine_name() {
  static const NeverDestroyed<std::string> name([] {
    std::string text = cat(processor_name(), "; tandem ", TANDEM_VERSION_STRING, "; ",
                           onednn::library_name(), "; ", blas::library_name());
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
    return text;
  });
  return *name;
}

std::string choices_path(const std::string& folder, std::string_view machine) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : machine) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return cat(folder, "/kernel-choices-1-", text, ".txt");
}

}  // namespace tandem::cpu
