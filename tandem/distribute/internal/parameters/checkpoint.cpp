// How the state of a ParameterStore comes into its folder, and back.
#include <algorithm>
#include <memory>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/parameter_store.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {

void ParameterStore::recover() {
  bool awaits_head = false;
  std::unique_ptr<StateReceiver> state;  // until it is complete
  UpdateLog::Reader reader;
  reader.snapshot = [&](std::string_view bytes) {
    proto::ParameterSnapshot message;
    read_part(bytes, message);
    awaits_head = message.in_log;
    if (awaits_head) return;
    const MutexLock lock(mutex_);
    state_ = ParameterState::of_snapshot(message);
    view_ = *message.view;
  };
  reader.record = [&](std::string_view bytes) {
    proto::UpdateRecord record;
    read_part(bytes, record);
    const MutexLock lock(mutex_);
    // Later ones are of states that were not completed.
    if (record.head.has() && std::exchange(awaits_head, false)) {
      state = std::make_unique<StateReceiver>(*record.head);
      view_ = *record.head->view;
    }
    if (state) state->add(record.part);
    if (record.head.has() || !record.part.empty()) return false;
    if (record.view.has()) view_ = *record.view;
    Bytes update;
    update.append(bytes, nullptr);
    (state ? state->state() : state_).apply_record(update);
    return true;
  };
  reader.state_end = [&] {
    if (awaits_head || (state && !state->complete())) {
      throw DataLossError(
          cat("The state of the parameter server ", options_.task, " in ", options_.folder,
              " is damaged. Start it with another folder, and begin from the last "
              "checkpoint of the program; replicas bring its state by themselves."));
    }
    if (!state) return;
    const MutexLock lock(mutex_);
    state_ = std::move(state->state());
    state.reset();
  };
  if (!log_->recover(reader)) return;
  const MutexLock lock(mutex_);
  shorten_log();
}

void ParameterStore::shorten_log() {
  if (!log_ || checkpoint_ || log_->bytes_since_state() <= options_.sizes.max_log_bytes) return;
  if (log_->bytes_since_state() > state_.num_bytes()) begin_checkpoint(0);
}

void ParameterStore::begin_checkpoint(std::uint64_t serial) {
  checkpoint_.emplace(Checkpoint{++num_checkpoints_, serial,
                                 PartSender(state_.parameters, options_.sizes.max_part_bytes)});
  log_->begin_state(record_of_head(state_, view_), false, {});
  continue_checkpoint();
}

void ParameterStore::continue_checkpoint() {
  while (checkpoint_->open_parts < kMaxOpenParts) {
    Bytes parts = record_of_parts(checkpoint_->parts, state_);
    if (parts.empty()) {
      proto::ParameterSnapshot message;
      message.in_log = true;
      log_->complete_state(write_message(message),
                           [this, serial = checkpoint_->serial](const std::exception_ptr& error) {
                             if (serial != 0) on_logged(serial, error);
                           });
      checkpoint_.reset();
      return;
    }
    ++checkpoint_->open_parts;
    log_->append_part(std::move(parts),
                      [this, number = checkpoint_->number](const std::exception_ptr& error) {
                        on_part_logged(number, error);
                      });
  }
}

void ParameterStore::on_part_logged(std::uint64_t checkpoint, const std::exception_ptr& error) {
  Actions actions;
  {
    const MutexLock lock(mutex_);
    if (!checkpoint_ || checkpoint_->number != checkpoint) return;
    --checkpoint_->open_parts;
    if (!error) return continue_checkpoint();
    log_->abandon_state();
    const std::uint64_t serial = checkpoint_->serial;
    checkpoint_.reset();
    if (serial != 0) queue_.mark_logged(serial, Status::of(error), actions);
  }
  for (const auto& action : actions) action();
}

}  // namespace tandem::distribute
