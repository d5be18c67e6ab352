#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/rpc.h"
#include "tandem/distribute/proto/messages.h"

namespace tandem::distribute {

/// A task as its eager client sees it: a queue of items that the task runs in order. One request is
/// on its way at a time, with all items that have come meanwhile, so that a call returns at once
/// and many of them take few messages. Thread-safe.
class RemoteTask : public std::enable_shared_from_this<RemoteTask> {
 public:
  /// The item has run, or has not.
  using ItemDone =
      std::function<void(const std::exception_ptr& error, const proto::QueueResponse& response)>;

  RemoteTask(std::string name, std::shared_ptr<Channel> channel, std::uint64_t context,
             std::vector<proto::DeviceAttributes> devices)
      : name_(std::move(name)),
        channel_(std::move(channel)),
        context_(context),
        devices_(std::move(devices)) {}

  const std::string& name() const { return name_; }
  std::uint64_t context() const { return context_; }
  Channel& channel() const { return *channel_; }
  const std::vector<proto::DeviceAttributes>& devices() const { return devices_; }
  /// 0 if the task has no such device.
  std::uint64_t incarnation(const std::string& device) const;

  /// `item`: a serialized QueueItem; `done` may be null.
  void enqueue(Bytes item, ItemDone done);
  /// Waits until all items so far have run. Throws the first failure since the last time.
  void wait();
  /// Throws it alone.
  void throw_unreported();
  /// A failure that something has thrown already.
  void mark_reported(const std::exception_ptr& error);
  /// Waits for the request that is on its way; what is not, and later items, end as failed.
  void close();

 private:
  struct Item {
    Bytes bytes;
    ItemDone done;
  };
  void send(std::vector<Item> batch);
  std::exception_ptr closed_error() const;
  void end(const std::vector<Item>& batch, const Status& status, Bytes reply);

  const std::string name_;
  const std::shared_ptr<Channel> channel_;
  const std::uint64_t context_;
  const std::vector<proto::DeviceAttributes> devices_;
  Mutex mutex_;
  std::condition_variable idle_;
  std::deque<Item> waiting_ TANDEM_GUARDED_BY(mutex_);
  bool sending_ TANDEM_GUARDED_BY(mutex_) = false;
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
  std::exception_ptr unreported_ TANDEM_GUARDED_BY(mutex_);
};

/// A QueueItem as a field of an EnqueueRequest, without the field's head.
Bytes item_bytes(const proto::QueueItem& item);

}  // namespace tandem::distribute
