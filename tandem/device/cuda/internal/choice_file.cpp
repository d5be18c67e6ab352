#include "tandem/device/cuda/internal/choice_file.h"

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "tandem/core/internal/cache_folder.h"

namespace tandem::cuda {
namespace {

constexpr const char* kFormat = "tandem cuda choices 1";

std::string hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace

bool may_measure() { return internal::environment_text("TANDEM_TUNING") != "0"; }

ChoiceFile::ChoiceFile(const std::string& folder, std::string machine)
    : folder_(folder),
      machine_(std::move(machine)),
      path_(folder.empty() ? "" : folder + "/cuda-choices-1-" + hash_of(machine_) + ".txt") {}

// A line for the format, one for the machine, one for each choice, and one that says how many there
// are. Nothing if the file is not whole, or of another machine.
std::optional<ChoiceFile::Choices> ChoiceFile::read() const {
  std::ifstream file(path_);
  std::string line;
  if (!file || !std::getline(file, line) || line != kFormat || !std::getline(file, line) ||
      line != "machine\t" + machine_)
    return std::nullopt;
  Choices choices;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string problem, way, seconds;
    std::getline(fields, problem, '\t');
    std::getline(fields, way, '\t');
    if (problem == "end") {
      if (way != std::to_string(choices.size())) return std::nullopt;
      return choices;
    }
    std::getline(fields, seconds, '\t');
    char* end = nullptr;
    const double value = std::strtod(seconds.c_str(), &end);
    if (way.empty() || seconds.empty() || *end != '\0' || !std::isfinite(value))
      return std::nullopt;
    choices[problem] = {way, value};
  }
  return std::nullopt;
}

void ChoiceFile::write(const Choices& choices) const {
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  const std::string temporary = path_ + '.' + std::to_string(getpid());
  {
    std::ofstream file(temporary);
    file << kFormat << "\nmachine\t" << machine_ << '\n';
    for (const auto& [problem, choice] : choices)
      file << problem << '\t' << choice.way << '\t' << choice.seconds << '\n';
    file << "end\t" << choices.size() << '\n';
    file.close();
    if (file) std::filesystem::rename(temporary, path_, failed);
    if (file && !failed) return;
  }
  std::filesystem::remove(temporary, failed);
}

std::optional<ChoiceFile::Choice> ChoiceFile::find(const std::string& problem) {
  std::lock_guard lock(mutex_);
  if (!std::exchange(loaded_, true)) choices_ = read().value_or(Choices());
  const auto found = choices_.find(problem);
  return found == choices_.end() ? std::nullopt : std::optional(found->second);
}

void ChoiceFile::keep(const std::string& problem, const Choice& choice) {
  std::lock_guard lock(mutex_);
  choices_[problem] = choice;
  if (path_.empty()) return;
  Choices all = read().value_or(Choices());
  for (const auto& [name, known] : choices_) all[name] = known;
  write(all);
}

}  // namespace tandem::cuda
