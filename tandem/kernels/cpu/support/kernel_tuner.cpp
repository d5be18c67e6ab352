#include "tandem/kernels/cpu/support/kernel_tuner.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/internal/cache_folder.h"
#include "tandem/core/log.h"
#include "tandem/fs/file_system.h"
#include "tandem/kernels/cpu/support/thresholds.h"

namespace tandem::cpu {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int index_of(std::span<const char* const> names, std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return static_cast<int>(i);
  return -1;
}

// What was measured for exactly these candidates, whose order may have changed since.
bool is_of(const MeasuredChoice& choice, std::span<const char* const> names) {
  return choice.times.size() == names.size() &&
         std::all_of(choice.times.begin(), choice.times.end(),
                     [&](const auto& time) { return index_of(names, time.first) >= 0; });
}

// Leaves a turn that was taken.
class TurnScope {
 public:
  explicit TurnScope(MeasuringTurn& turn) : turn_(turn) {}
  ~TurnScope() { turn_.leave(); }
  TurnScope(const TurnScope&) = delete;
  TurnScope& operator=(const TurnScope&) = delete;

 private:
  MeasuringTurn& turn_;
};

}  // namespace

bool MeasuringTurn::take() {
  const std::thread::id self = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  if (!free_.wait_for(lock, std::chrono::seconds(2),
                      [&] { return depth_ == 0 || holder_ == self; })) {
    return false;
  }
  holder_ = self;
  ++depth_;
  return true;
}

void MeasuringTurn::leave() {
  std::lock_guard lock(mutex_);
  if (--depth_ == 0) free_.notify_all();
}

KernelTuner::KernelTuner(Options options)
    : options_([&] {
        if (!options.now) options.now = steady_seconds;
        return std::move(options);
      }()) {}

KernelTuner& KernelTuner::process() {
  static auto* const tuner = [] {
    Options options;
    const char* const tuning = std::getenv("TANDEM_TUNING");
    options.enabled = !tuning || std::string_view(tuning) != "0";
    if (options.enabled) {
      options.folder = internal::cache_folder();
      options.machine = machine_name();
    }
    return new KernelTuner(std::move(options));
  }();
  return *tuner;
}

void KernelTuner::remember(const ProblemClass& problem, int choice) {
  const std::uint64_t key = problem.packed();
  const std::uint64_t entry = key << kChoiceBits | static_cast<std::uint64_t>(choice);
  for (std::size_t i = 0; i < kProbes; ++i) {
    std::uint64_t expected = 0;
    if (slots_[slot(key, i)].compare_exchange_strong(expected, entry, std::memory_order_release) ||
        expected >> kChoiceBits == key) {
      return;
    }
  }
}

void KernelTuner::load() const {
  if (loaded_) return;
  loaded_ = true;
  if (options_.folder.empty()) return;
  const std::string path = choices_path(options_.folder, options_.machine);
  try {
    if (fs::exists(path)) choices_ = read_choices(fs::read_file(path), options_.machine);
  } catch (const Error& e) {
    log(LogLevel::kWarning, cat("Measured kernel choices in ", path, " are ignored and measured ",
                                "again: ", e.what()));
  }
}

// With what other processes have written meanwhile; what is in the file already stays.
void KernelTuner::save() {
  if (options_.folder.empty() || !may_save_) return;
  const std::string path = choices_path(options_.folder, options_.machine);
  try {
    fs::file_system_of(path).make_directories(options_.folder);
    MeasuredChoices all;
    try {
      if (fs::exists(path)) all = read_choices(fs::read_file(path), options_.machine);
    } catch (const InvalidArgumentError&) {
      // A corrupt file was reported when it was loaded, and is replaced.
    }
    {
      std::lock_guard lock(mutex_);
      for (const auto& [key, choice] : choices_)
        if (!unreliable_.contains(key)) all.emplace(key, choice);
    }
    fs::write_file(path, write_choices(all, options_.machine));
  } catch (const Error& e) {
    may_save_ = false;
    log(LogLevel::kInfo, cat("Measured kernel choices are not kept for later processes: ", e.what(),
                             " (TANDEM_CACHE_DIR names another folder, TANDEM_TUNING=0 measures "
                             "nothing.)"));
  }
}

KernelTuner::Sample KernelTuner::sample(int times, int candidate,
                                        const std::function<bool(int)>& run) const {
  const auto interruptions = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
  };
  const long before = interruptions();
  const double begin = options_.now();
  for (int i = 0; i < times; ++i) run(candidate);
  const double seconds = (options_.now() - begin) / times;
  return {seconds, interruptions() == before};
}

KernelTuner::Measured KernelTuner::measure(std::span<const char* const> names, int assumed,
                                           const std::function<bool(int)>& run) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Candidate {
    bool able = false;
    double best = kNever;         // of all samples
    double undisturbed = kNever;  // of those that no other work interrupted
  };
  const double begin = options_.now();
  std::vector<Candidate> candidates(names.size());
  // The first run makes primitives and touches memory; it is no sample.
  for (std::size_t i = 0; i < names.size(); ++i) candidates[i].able = run(static_cast<int>(i));
  const auto fastest = [&] {
    return std::min_element(candidates.begin(), candidates.end(),
                            [](const auto& x, const auto& y) { return x.best < y.best; });
  };
  // A sample that was interrupted says nothing against a candidate.
  const auto hopeless = [&](const Candidate& c) {
    return !c.able ||
           (c.undisturbed != kNever && c.undisturbed > tuning::kHopeless * fastest()->best);
  };
  const auto disturbed = [&] {
    return std::any_of(candidates.begin(), candidates.end(),
                       [&](const Candidate& c) { return !hopeless(c) && c.undisturbed == kNever; });
  };
  for (int round = 0;
       round < tuning::kMeasuredRounds || (round < tuning::kMaxMeasuredRounds && disturbed());
       ++round) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      Candidate& c = candidates[i];
      if (hopeless(c)) continue;
      const double wanted = c.best == kNever ? 1 : tuning::kSampleSeconds / c.best;
      const Sample one =
          sample(static_cast<int>(std::clamp(wanted, 1.0, 64.0)), static_cast<int>(i), run);
      c.best = std::min(c.best, one.seconds);
      if (one.undisturbed) c.undisturbed = std::min(c.undisturbed, one.seconds);
    }
    if ((options_.now() - begin) > options_.class_seconds) break;
  }
  Measured out;
  out.reliable = !disturbed();
  const double margin = out.reliable ? tuning::kWorthChanging : tuning::kWorthChangingDisturbed;
  for (std::size_t i = 0; i < names.size(); ++i)
    out.choice.times.emplace_back(names[i], candidates[i].able ? candidates[i].best : -1);
  const auto best = fastest();
  const Candidate& usual = candidates[static_cast<std::size_t>(assumed)];
  out.choice.chosen = usual.able && usual.best <= margin * best->best
                          ? names[static_cast<std::size_t>(assumed)]
                          : names[static_cast<std::size_t>(best - candidates.begin())];
  return out;
}

int KernelTuner::choose(const ProblemClass& problem, std::span<const char* const> names,
                        int assumed, const std::function<bool(int)>& run) {
  if (!options_.enabled || names.size() < 2) return assumed;
  if (const int choice = known(problem); choice >= 0) return choice;
  if (!measuring_.take()) return assumed;
  const TurnScope turn(measuring_);
  if (const int choice = known(problem); choice >= 0) return choice;
  const std::pair<std::string, int> key{problem.text(), problem.threads};
  {
    std::lock_guard choices_lock(mutex_);
    load();
    const auto found = choices_.find(key);
    if (found != choices_.end() && is_of(found->second, names)) {
      const int choice = index_of(names, found->second.chosen);
      remember(problem, choice);
      return choice;
    }
  }
  if (spent_ > options_.process_seconds) {
    remember(problem, assumed);
    return assumed;
  }
  const double begin = options_.now();
  const Measured measured = measure(names, assumed, run);
  spent_ += (options_.now() - begin);
  const int choice = index_of(names, measured.choice.chosen);
  remember(problem, choice);
  {
    std::lock_guard choices_lock(mutex_);
    choices_[key] = measured.choice;
    if (!measured.reliable) unreliable_.insert(key);
  }
  if (measured.reliable) save();
  return choice;
}

KernelChoice KernelTuner::describe(const ProblemClass& problem, std::span<const char* const> names,
                                   int assumed) const {
  KernelChoice out;
  out.problem = problem.text();
  out.chosen = names[static_cast<std::size_t>(assumed)];
  for (const char* name : names) out.candidates.push_back({name, 0, ""});
  if (!options_.enabled) {
    out.reason = "assumed, as tuning is off (TANDEM_TUNING=0)";
    return out;
  }
  std::lock_guard lock(mutex_);
  load();
  auto found = choices_.find({out.problem, problem.threads});
  if (found == choices_.end()) found = choices_.lower_bound({out.problem, 0});
  if (found == choices_.end() || found->first.first != out.problem ||
      !is_of(found->second, names)) {
    out.reason = "assumed: the first call on this machine measures";
    return out;
  }
  out.threads = found->first.second;
  out.chosen = found->second.chosen;
  out.reason = cat("fastest of ", names.size(), " measured with ", out.threads,
                   out.threads == 1 ? " thread" : " threads",
                   unreliable_.contains(found->first)
                       ? ", on a busy machine: the next process measures again"
                       : "");
  for (const auto& [name, seconds] : found->second.times) {
    KernelChoice::Candidate& c = out.candidates[static_cast<std::size_t>(index_of(names, name))];
    c.seconds = std::max(seconds, 0.0);
    if (seconds < 0) c.refused = "cannot run this case";
  }
  return out;
}

KernelTuner* tuner_for(const KernelContext& context) {
  if (context.deterministic()) return nullptr;
  KernelTuner& tuner = KernelTuner::process();
  return tuner.enabled() ? &tuner : nullptr;
}

}  // namespace tandem::cpu
