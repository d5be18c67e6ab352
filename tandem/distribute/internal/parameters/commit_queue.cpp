#include "tandem/distribute/internal/parameters/commit_queue.h"

#include <utility>

namespace tandem::distribute {

ReplyDone both(ReplyDone one, ReplyDone other) {
  return
      [one = std::move(one), other = std::move(other)](const Status& status, const Bytes& reply) {
        one(status, reply);
        other(status, reply);
      };
}

CommitQueue::Entry& CommitQueue::add(std::int64_t position, Bytes record, std::int64_t epoch_before,
                                     bool logged, bool forwarded) {
  return entries_.emplace_back(
      Entry{next_serial_++, position, std::move(record), epoch_before, logged, forwarded});
}

std::optional<std::vector<const CommitQueue::Entry*>> CommitQueue::updates_after(
    std::int64_t position, std::int64_t epoch, std::int64_t last) const {
  std::vector<const Entry*> updates;
  for (const Entry& entry : entries_) {
    if (entry.record.empty() || entry.position <= position) continue;
    const bool is_next = entry.position == position + 1 + static_cast<std::int64_t>(updates.size());
    if (!is_next || (updates.empty() && entry.epoch_before != epoch)) return std::nullopt;
    updates.push_back(&entry);
  }
  if (position + static_cast<std::int64_t>(updates.size()) != last) return std::nullopt;
  return updates;
}

void CommitQueue::wait(Done done, Actions& actions) {
  if (entries_.empty()) {
    actions.push_back([done = std::move(done)] { done({}); });
  } else {
    entries_.back().done.push_back(std::move(done));
    take_finished(actions);
  }
}

void CommitQueue::mark_logged(std::uint64_t serial, const Status& status, Actions& actions) {
  mark(
      serial,
      [&](Entry& entry) {
        entry.logged = true;
        if (!status.ok()) entry.status = status;
      },
      actions);
}

void CommitQueue::mark_forwarded(std::uint64_t serial, Actions& actions) {
  mark(
      serial, [](Entry& entry) { entry.forwarded = true; }, actions);
}

void CommitQueue::mark(std::uint64_t serial, const std::function<void(Entry&)>& change,
                       Actions& actions) {
  for (Entry& entry : entries_) {
    if (entry.serial == serial) change(entry);
  }
  take_finished(actions);
}

void CommitQueue::mark_forwarded_until(std::int64_t position, Actions& actions) {
  for (Entry& entry : entries_) {
    if (entry.position <= position) entry.forwarded = true;
  }
  take_finished(actions);
}

void CommitQueue::release(Actions& actions) {
  held_ = false;
  take_finished(actions);
}

void CommitQueue::take_finished(Actions& actions) {
  while (!held_ && !entries_.empty() && entries_.front().logged && entries_.front().forwarded) {
    Entry& first = entries_.front();
    for (Done& done : first.done) {
      actions.push_back([done = std::move(done), status = first.status] { done(status); });
    }
    entries_.pop_front();
  }
}

void CommitQueue::fail(const Status& status, Actions& actions) {
  for (Entry& entry : entries_) {
    for (Done& done : entry.done)
      actions.push_back([done = std::move(done), status] { done(status); });
  }
  entries_.clear();
  held_ = false;
}

}  // namespace tandem::distribute
