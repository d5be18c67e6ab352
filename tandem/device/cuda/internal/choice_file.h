#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace tandem::cuda {

/// What was measured on a kind of GPU and is kept for later processes: for each problem the way
/// that was the fastest, as a text that its writer chooses. A text file in the folder of the CPU's
/// choices (docs/kernel-choice.md), read once. A file that is damaged is ignored and replaced;
/// files appear whole or not at all, and what other processes have kept meanwhile stays.
/// Thread-safe.
class ChoiceFile {
 public:
  struct Choice {
    std::string way;
    double seconds = 0;
  };

  /// `machine` is all that the choices depend on, on one line. With an empty folder they are kept
  /// for this process alone.
  ChoiceFile(const std::string& folder, std::string machine);

  std::optional<Choice> find(const std::string& problem);
  void keep(const std::string& problem, const Choice& choice);
  const std::string& path() const { return path_; }

 private:
  using Choices = std::map<std::string, Choice>;
  std::optional<Choices> read() const;
  void write(const Choices& choices) const;

  const std::string folder_, machine_, path_;
  std::mutex mutex_;
  bool loaded_ = false;  // guarded by mutex_
  Choices choices_;      // guarded by mutex_
};

/// False where TANDEM_TUNING is 0.
bool may_measure();

}  // namespace tandem::cuda
