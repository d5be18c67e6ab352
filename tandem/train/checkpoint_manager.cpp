#include "tandem/train/checkpoint_manager.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/paths.h"
#include "tandem/fs/stale_files.h"
#include "tandem/train/checkpoint_state.h"

namespace tandem::train {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void remove_quietly(const std::string& path) {
  try {
    fs::file_system_of(path).remove(path);
  } catch (const Error&) {
    // A file too many takes room and does no other harm.
  }
}

// The number at the end of "ckpt-12.index", or nothing.
std::optional<std::int64_t> number_of(std::string_view file, const std::string& name) {
  constexpr std::string_view kEnd = ".index";
  if (!file.starts_with(name + "-") || !file.ends_with(kEnd)) return std::nullopt;
  file.remove_prefix(name.size() + 1);
  file.remove_suffix(kEnd.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), number);
  if (error != std::errc() || end != file.data() + file.size()) return std::nullopt;
  return number;
}

}  // namespace

namespace {

// The checkpoints of a folder. A thread that writes in the background lists what it wrote, so this
// holds nothing of the objects that are saved.
struct List {
  struct Saved {
    std::string path;
    double time;
  };

  List(std::string folder, const CheckpointManagerOptions& how)
      : directory(std::move(folder)),
        name(how.checkpoint_name),
        max_to_keep(how.max_to_keep),
        hours(how.keep_checkpoint_every_n_hours),
        clock(how.clock ? how.clock : now) {}

  std::string path(const std::string& file) const { return fs::join_path(directory, file); }

  // By number, whatever a state file says: for when there is none to be read.
  std::vector<std::string> found_in_folder() const {
    std::vector<std::pair<std::int64_t, std::string>> found;
    for (const std::string& file : fs::file_system_of(directory).list(directory)) {
      if (const auto number = number_of(file, name))
        found.emplace_back(*number, path(file.substr(0, file.size() - 6)));
    }
    std::sort(found.begin(), found.end());
    std::vector<std::string> paths;
    for (auto& entry : found) paths.push_back(std::move(entry.second));
    return paths;
  }

  // Goes on with the folder as it is.
  void recover() TANDEM_EXCLUDES(mutex) {
    const double time = clock();
    const MutexLock lock(mutex);
    last_preserved = time;
    if (!fs::exists(directory)) return;
    remove_stale();
    try {
      const std::optional<CheckpointState> known = get_checkpoint_state(directory);
      if (!known) return;
      if (known->last_preserved_timestamp != 0) last_preserved = known->last_preserved_timestamp;
      const auto& times = known->all_model_checkpoint_timestamps;
      const auto& paths = known->all_model_checkpoint_paths;
      for (std::size_t i = 0; i < paths.size(); ++i)
        kept.push_back({paths[i], times.size() == paths.size() ? times[i] : time});
    } catch (const DataLossError& error) {
      log(LogLevel::kWarning, cat(error.what(), " The checkpoints that lie in ", directory,
                                  " are taken in the order of their numbers."));
      for (std::string& each : found_in_folder()) kept.push_back({std::move(each), time});
    }
  }

  // What a process that was killed had begun.
  void remove_stale() const {
    std::set<std::string> beginnings;
    for (std::string file : fs::file_system_of(directory).list(directory)) {
      if (!file.starts_with(name) || !file.ends_with(".tmp")) continue;
      for (int part = 0; part < 4; ++part) file.resize(std::min(file.rfind('.'), file.size()));
      beginnings.insert(path(file));
    }
    for (const std::string& each : beginnings) fs::remove_stale_files(each);
    fs::remove_stale_files(path("checkpoint"));
  }

  // A checkpoint is durable: it is listed, and what is too old goes when the list is durable too.
  void record(const std::string& saved) TANDEM_EXCLUDES(mutex) {
    std::vector<std::string> old;
    CheckpointState state;
    {
      const MutexLock lock(mutex);
      std::erase_if(kept, [&](const Saved& s) { return s.path == saved; });
      kept.push_back({saved, clock()});
      while (max_to_keep && static_cast<std::int64_t>(kept.size()) > *max_to_keep) {
        const Saved first = kept.front();
        kept.erase(kept.begin());
        if (hours && first.time - *hours * 3600 >= last_preserved) {
          last_preserved = first.time;  // stays, and is managed no longer
        } else {
          old.push_back(first.path);
        }
      }
      state.model_checkpoint_path = saved;
      state.last_preserved_timestamp = last_preserved;
      for (const Saved& each : kept) {
        state.all_model_checkpoint_paths.push_back(each.path);
        state.all_model_checkpoint_timestamps.push_back(each.time);
      }
    }
    update_checkpoint_state(directory, state);
    for (const std::string& each : old) remove(each);
  }

  // The index first: without it the rest is no checkpoint.
  static void remove(const std::string& saved) {
    remove_quietly(saved + ".index");
    const std::string folder = fs::parent_path(saved);
    const std::string begin = std::string(fs::base_name(saved)) + ".data-";
    try {
      for (const std::string& file : fs::file_system_of(folder).list(folder))
        if (file.starts_with(begin)) remove_quietly(fs::join_path(folder, file));
    } catch (const Error&) {
      // The folder is gone.
    }
  }

  std::vector<std::string> paths() const TANDEM_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    std::vector<std::string> all;
    for (const Saved& each : kept) all.push_back(each.path);
    return all;
  }

  const std::string directory;
  const std::string name;
  const std::optional<std::int64_t> max_to_keep;
  const std::optional<double> hours;
  const std::function<double()> clock;
  mutable Mutex mutex;
  std::vector<Saved> kept TANDEM_GUARDED_BY(mutex);
  double last_preserved TANDEM_GUARDED_BY(mutex) = 0;
};

}  // namespace

struct CheckpointManager::State {
  std::optional<std::int64_t> step() const {
    if (!options.step_counter.defined()) return std::nullopt;
    return options.step_counter.read_value().item<std::int64_t>();
  }

  Checkpoint checkpoint;
  CheckpointManagerOptions options;
  std::shared_ptr<List> list;
  std::optional<std::int64_t> last_step = std::nullopt;
};

CheckpointManager::CheckpointManager(Checkpoint checkpoint, String directory,
                                     const CheckpointManagerOptions& options) {
  const auto check = [](const char* name, const auto& value) {
    if (value && !(*value > 0)) {
      throw InvalidArgumentError(
          cat("CheckpointManager: ", name, " must be positive, got ", *value, "."));
    }
  };
  check("max_to_keep", options.max_to_keep);
  check("keep_checkpoint_every_n_hours", options.keep_checkpoint_every_n_hours);
  check("checkpoint_interval", options.checkpoint_interval);
  if (options.checkpoint_interval && !options.step_counter.defined()) {
    throw InvalidArgumentError(
        "CheckpointManager: `step_counter` should be passed if `checkpoint_interval` is given.");
  }
  if (directory.empty()) throw InvalidArgumentError("CheckpointManager: the directory is empty.");
  if (options.checkpoint_name.empty() || options.checkpoint_name.find('/') != std::string::npos) {
    throw InvalidArgumentError(cat("CheckpointManager: checkpoint_name '", options.checkpoint_name,
                                   "' must be a name without '/'."));
  }
  auto list = std::make_shared<List>(std::move(directory), options);
  list->recover();
  state_ = std::make_shared<State>(State{std::move(checkpoint), options, std::move(list)});
}

std::optional<std::string> CheckpointManager::save(const SaveOptions& options) const {
  State& s = *state_;
  const std::optional<std::int64_t> step = s.step();
  if (options.check_interval && s.options.checkpoint_interval && s.last_step && step &&
      *step < *s.last_step + *s.options.checkpoint_interval) {
    return std::nullopt;
  }
  s.checkpoint.sync();
  const Variable& counter = s.checkpoint.save_counter();
  const Tensor before = counter.read_value();
  const std::int64_t next = before.item<std::int64_t>() + 1;
  const std::string path =
      s.list->path(cat(s.options.checkpoint_name, "-", options.checkpoint_number.value_or(next)));
  counter.assign(Tensor(next));
  try {
    s.checkpoint.write(path, options.checkpoint, [list = s.list, path] { list->record(path); });
  } catch (...) {
    counter.assign(before);
    throw;
  }
  s.last_step = step;
  return path;
}

void CheckpointManager::sync() const { state_->checkpoint.sync(); }

std::optional<std::string> CheckpointManager::restore_or_initialize() const {
  State& s = *state_;
  const std::vector<std::string> known = checkpoints();
  std::string failures;
  for (auto at = known.rbegin(); at != known.rend(); ++at) {
    try {
      s.checkpoint.restore(*at);
    } catch (const Error& error) {
      // Another program's model, say, is no reason to look further back.
      if (error.code() != Code::kDataLoss && error.code() != Code::kNotFound) throw;
      failures += cat(failures.empty() ? "" : "\n", error.what());
      if (at + 1 != known.rend()) {
        log(LogLevel::kWarning, cat("Checkpoint ", *at, " cannot be restored, so ", *(at + 1),
                                    " is tried: ", error.what()));
      }
      continue;
    }
    s.last_step = s.step();
    return *at;
  }
  if (!known.empty()) {
    throw DataLossError(
        cat("None of the checkpoints in ", s.list->directory, " can be restored:\n", failures));
  }
  if (s.options.init_fn) s.options.init_fn();
  return std::nullopt;
}

std::optional<std::string> CheckpointManager::latest_checkpoint() const {
  const std::vector<std::string> all = checkpoints();
  if (all.empty()) return std::nullopt;
  return all.back();
}

std::vector<std::string> CheckpointManager::checkpoints() const { return state_->list->paths(); }
const std::string& CheckpointManager::directory() const { return state_->list->directory; }
const Checkpoint& CheckpointManager::checkpoint() const { return state_->checkpoint; }

}  // namespace tandem::train
