#include "tandem/train/checkpoint.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/paths.h"
#include "tandem/runtime/saving.h"
#include "tandem/train/checkpoint_state.h"
#include "tandem/train/internal/background_writer.h"
#include "tandem/train/internal/legacy_names.h"
#include "tandem/train/internal/object_tree.h"
#include "tandem/train/internal/restoration.h"

namespace tandem::train {
namespace {

constexpr const char* kCounter = "save_counter";

void check_prefix(const std::string& prefix) {
  if (prefix.empty() || prefix.back() == '/') {
    throw InvalidArgumentError(cat("A checkpoint's path '", prefix,
                                   "' must end in a name that its files begin with, as in "
                                   "\"run/ckpt\"."));
  }
}

void make_folder_of(const std::string& path) {
  const std::string folder = fs::parent_path(path);
  if (!folder.empty() && !fs::exists(folder)) fs::file_system_of(folder).make_directories(folder);
}

std::string part_path(const std::string& prefix, int worker, int num_workers) {
  const auto digits = [](int number) {
    const std::string text = std::to_string(number);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  return cat(prefix, "_temp/part-", digits(worker), "-of-", digits(num_workers));
}

}  // namespace

// ---- The objects ----

struct Checkpoint::State : std::enable_shared_from_this<State> {
  class Root final : public Trackable {
   public:
    void track(TrackedObject& object) override {
      for (const Tracked::Part& part : parts) object.add(part.name, part.value);
    }
    std::vector<Tracked::Part> parts;
  };

  void add(const std::string& name, const Tracked& part) {
    for (const Tracked::Part& other : root->parts) {
      if (other.name == name)
        throw InvalidArgumentError(cat("The checkpoint has an object '", name, "' already."));
    }
    root->parts.push_back({name, part});
  }
  internal::ObjectTree tree() const { return internal::ObjectTree(root); }

  // Gives values to what there is, and waits for what may come.
  void apply() {
    if (!restoration) return;
    const internal::ObjectTree now = tree();
    restoration->apply(now);
    for (std::size_t i = 0; i < now.nodes.size(); ++i) {
      const auto& object = now.nodes[i].object;
      if (!object || !restoration->awaits_parts(now, i)) continue;
      // The object holds what it waits for, so that the Checkpoint need not outlive the restore.
      object->on_further_parts([state = shared_from_this(), of = std::weak_ptr(restoration)] {
        if (state->restoration == of.lock()) state->apply();
      });
    }
  }

  CheckpointContents contents(const CheckpointOptions& options) const;

  std::shared_ptr<Root> root = std::make_shared<Root>();
  Variable counter{Tensor(std::int64_t{0}), {.trainable = false, .name = kCounter}};
  std::shared_ptr<internal::Restoration> restoration;
  internal::BackgroundWriter writer;
};

Checkpoint::Checkpoint(std::initializer_list<Tracked::Part> parts)
    : Checkpoint(std::vector<Tracked::Part>(parts)) {}

Checkpoint::Checkpoint(std::vector<Tracked::Part> parts) : state_(std::make_shared<State>()) {
  for (const Tracked::Part& part : parts) state_->add(part.name, part.value);
  state_->add(kCounter, state_->counter);
}

void Checkpoint::track(const std::string& name, const Tracked& part) const {
  state_->add(name, part);
  state_->apply();
}

const Variable& Checkpoint::save_counter() const { return state_->counter; }

// ---- Saving ----

namespace {

// Which data file each value goes to; returns how many there are.
int assign_shards(CheckpointContents& contents, const CheckpointOptions& options) {
  if (options.shard_by_device) {
    std::map<std::string, int> shards;
    for (CheckpointContents::Item& item : contents.items) {
      const std::string device = item.value.device();
      item.shard = shards.emplace(device, static_cast<int>(shards.size())).first->second;
    }
    return std::max(1, static_cast<int>(shards.size()));
  }
  if (options.max_shard_size <= 0) return 1;
  int shard = 0;
  std::int64_t bytes = 0;
  for (CheckpointContents::Item& item : contents.items) {
    const auto size = static_cast<std::int64_t>(
        item.value.num_elements() *
        static_cast<std::int64_t>(std::max<std::size_t>(dtype_size(item.value.dtype()), 1)));
    if (bytes != 0 && bytes + size > options.max_shard_size) {
      ++shard;
      bytes = 0;
    }
    bytes += size;
    item.shard = shard;
  }
  return shard + 1;
}

std::vector<CheckpointContents::Item> items_of(const internal::ObjectTree& tree) {
  std::vector<CheckpointContents::Item> items;
  for (const auto& node : tree.nodes) {
    for (const TrackedValue& value : node.values) {
      try {
        items.push_back({internal::ObjectTree::key(node, value), value.save()});
      } catch (...) {
        std::rethrow_exception(
            with_line(std::current_exception(), cat("while '", node.path, "' was saved")));
      }
    }
  }
  return items;
}

// A worker's share: objects are described in all, values lie in one.
void keep_share(CheckpointContents& contents, int worker, int num_workers) {
  std::vector<CheckpointContents::Item> mine;
  for (std::size_t i = 0; i < contents.items.size(); ++i) {
    if (static_cast<int>(i % static_cast<std::size_t>(num_workers)) == worker)
      mine.push_back(std::move(contents.items[i]));
  }
  contents.items = std::move(mine);
  if (worker != 0) contents.graph.reset();
}

}  // namespace

CheckpointContents Checkpoint::State::contents(const CheckpointOptions& options) const {
  const internal::ObjectTree now = tree();
  CheckpointContents all;
  if (options.legacy_names) {
    all.items = internal::legacy_items(now);
  } else {
    all.graph = now.graph();
    all.items = items_of(now);
  }
  if (options.num_workers > 1) keep_share(all, options.worker, options.num_workers);
  all.num_shards = assign_shards(all, options);
  return all;
}

std::string Checkpoint::write(const String& prefix, const CheckpointOptions& options,
                              std::function<void()> then) const {
  check_prefix(prefix);
  if (options.num_workers < 1 || options.worker < 0 || options.worker >= options.num_workers) {
    throw InvalidArgumentError(cat("A checkpoint cannot be written by worker ", options.worker,
                                   " of ", options.num_workers, "."));
  }
  const std::string path = options.num_workers > 1
                               ? part_path(prefix, options.worker, options.num_workers)
                               : std::string(prefix);
  const Saving& saving = saving_for("td::train::Checkpoint");
  sync();
  auto contents = std::make_shared<CheckpointContents>(state_->contents(options));
  if (options.enable_async) contents->when_unshared = internal::give_way;
  auto work = [&saving, path, contents = std::move(contents), then = std::move(then),
               callbacks = options.write_callbacks] {
    make_folder_of(path);
    saving.write_checkpoint(path, std::move(*contents));
    if (then) then();
    for (const auto& callback : callbacks) callback(path);
  };
  if (options.enable_async) {
    state_->writer.start(std::move(work));
  } else {
    work();
  }
  return path;
}

std::string Checkpoint::write(const String& prefix, const CheckpointOptions& options) const {
  return write(prefix, options, nullptr);
}

std::string Checkpoint::save(const String& prefix, const CheckpointOptions& options) const {
  check_prefix(prefix);
  sync();
  const std::int64_t number = state_->counter.read_value().item<std::int64_t>() + 1;
  const Tensor before = state_->counter.read_value();
  state_->counter.assign(Tensor(number));
  const std::string path = cat(prefix, "-", number);
  try {
    return write(path, options, [path] {
      update_checkpoint_state(fs::parent_path(path), {.model_checkpoint_path = path,
                                                      .all_model_checkpoint_paths = {path}});
    });
  } catch (...) {
    state_->counter.assign(before);
    throw;
  }
}

void Checkpoint::sync() const { state_->writer.wait(); }

void merge_checkpoints(const String& prefix, int num_workers) {
  std::vector<std::string> parts;
  for (int i = 0; i < num_workers; ++i) parts.push_back(part_path(prefix, i, num_workers));
  saving_for("td::train::merge_checkpoints").merge_checkpoints(parts, prefix);
}

// ---- Restoring ----

struct LoadStatus::State {
  std::shared_ptr<Checkpoint::State> checkpoint;
  std::shared_ptr<internal::Restoration> restoration;  // none: no checkpoint was given

  internal::Restoration& restored() const {
    if (!restoration) {
      throw FailedPreconditionError(
          "No checkpoint specified (the path was empty, as CheckpointManager::latest_checkpoint is "
          "where nothing was saved); no object got a value.");
    }
    return *restoration;
  }
  std::vector<std::string> without_value() const {
    std::vector<std::string> paths;
    for (const auto& node : checkpoint->tree().nodes) {
      for (const TrackedValue& value : node.values) {
        // Checkpoints that were not numbered have no counter.
        if (!(restoration && restoration->is_restored(node, value)) && node.path != kCounter)
          paths.push_back(node.path);
      }
    }
    return paths;
  }
};

namespace {

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i)
    text += cat(i == 0 ? "" : ", ", names[i]);
  if (names.size() > kShown) text += cat(" and ", names.size() - kShown, " more");
  return text;
}

}  // namespace

LoadStatus Checkpoint::start_restoring(const std::string& path,
                                       const RestoreOptions& options) const {
  sync();
  auto restoration = std::make_shared<internal::Restoration>(path, options);
  const auto before = std::exchange(state_->restoration, restoration);
  try {
    state_->apply();
  } catch (...) {
    restoration->expects_partial = true;  // the error says it all
    state_->restoration = before;
    throw;
  }
  auto status = std::make_shared<LoadStatus::State>();
  status->checkpoint = state_;
  status->restoration = restoration;
  return LoadStatus(std::move(status));
}

LoadStatus Checkpoint::restore(const String& path, const RestoreOptions& options) const {
  return start_restoring(path, options);
}

LoadStatus Checkpoint::initialization_only() const {
  auto status = std::make_shared<LoadStatus::State>();
  status->checkpoint = state_;
  return LoadStatus(std::move(status));
}

LoadStatus Checkpoint::read(const std::string& path, const RestoreOptions& options) const {
  const Tensor count = state_->counter.read_value();
  LoadStatus status = start_restoring(path, options);
  state_->counter.assign(count);
  return status;
}

const LoadStatus& LoadStatus::assert_consumed() const {
  assert_existing_objects_matched();
  const std::vector<std::string> left = unused_values();
  if (!left.empty()) {
    throw FailedPreconditionError(cat("Checkpoint ", state_->restored().prefix(),
                                      " holds values that no object took: ", list_of(left),
                                      ". If that is meant, use "
                                      "assert_existing_objects_matched or expect_partial."));
  }
  return *this;
}

const LoadStatus& LoadStatus::assert_existing_objects_matched() const {
  state_->restored().expects_partial = true;
  const std::vector<std::string> without = objects_without_value();
  if (!without.empty()) {
    throw FailedPreconditionError(cat("Checkpoint ", state_->restored().prefix(),
                                      " has no value for: ", list_of(without),
                                      ". If that is meant, use expect_partial."));
  }
  return *this;
}

const LoadStatus& LoadStatus::assert_nontrivial_match() const {
  state_->restored().expects_partial = true;
  if (!state_->restored().matched_any()) {
    throw FailedPreconditionError(cat("Nothing except the root object matches checkpoint ",
                                      state_->restored().prefix(),
                                      ": its objects have other names."));
  }
  return *this;
}

const LoadStatus& LoadStatus::expect_partial() const {
  if (state_->restoration) state_->restoration->expects_partial = true;
  return *this;
}

std::vector<std::string> LoadStatus::unused_values() const {
  return state_->restoration ? state_->restoration->unused() : std::vector<std::string>();
}
std::vector<std::string> LoadStatus::objects_without_value() const {
  return state_->without_value();
}

}  // namespace tandem::train
