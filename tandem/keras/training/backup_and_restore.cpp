#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/keras/callbacks.h"
#include "tandem/keras/internal/fit_state.h"
#include "tandem/keras/model.h"
#include "tandem/keras/model_impl.h"
#include "tandem/keras/trackable.h"
#include "tandem/train/checkpoint_manager.h"

namespace tandem::keras::callbacks {
namespace {

constexpr const char* kName = "backup";

// The files of backups; what else lies there is the user's.
void remove_backups(const std::string& folder) {
  fs::FileSystem& files = fs::file_system_of(folder);
  for (const std::string& file : files.list(folder)) {
    if (file == "checkpoint" || file.starts_with(std::string(kName) + "-"))
      files.remove(folder + "/" + file);
  }
  if (files.list(folder).empty()) files.remove(folder);
}

}  // namespace

BackupAndRestore::BackupAndRestore(String backup_dir, const BackupAndRestoreOptions& options)
    : backup_dir_(std::move(backup_dir)), options_(options) {
  if (backup_dir_.empty())
    throw InvalidArgumentError("BackupAndRestore: Empty `backup_dir` argument passed.");
  if (options.save_freq && *options.save_freq <= 0) {
    throw InvalidArgumentError(
        cat("BackupAndRestore: save_freq must be positive, got ", *options.save_freq, "."));
  }
}

void BackupAndRestore::on_train_begin() {
  internal::FitState* fit = model().model_impl().fit_state;
  if (fit == nullptr) {
    throw FailedPreconditionError("BackupAndRestore works within fit of a model alone.");
  }
  fit->use_own_random_stream();
  const train::Checkpoint checkpoint({{"model", model()}, {"fit", *fit}});
  manager_ = std::make_shared<train::CheckpointManager>(
      checkpoint, backup_dir_,
      train::CheckpointManagerOptions{.max_to_keep = options_.double_checkpoint ? 2 : 1,
                                      .checkpoint_name = kName});
  manager_->restore_or_initialize();
  batches_ = 0;
  const auto save_now = [this] { save(); };
  if (options_.save_freq) {
    fit->at_batch_end = [this] {
      if (++batches_ % *options_.save_freq == 0) save();
    };
  } else {
    fit->at_epoch_end = save_now;
  }
}

void BackupAndRestore::save() {
  manager_->save({.checkpoint = {.enable_async = options_.enable_async}});
}

void BackupAndRestore::on_train_end(const Logs&) {
  manager_->sync();
  manager_.reset();
  if (options_.delete_checkpoint && fs::exists(backup_dir_)) remove_backups(backup_dir_);
}

}  // namespace tandem::keras::callbacks
