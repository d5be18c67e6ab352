#include "tandem/distribute/internal/remote/remote_task.h"

#include <future>
#include <iterator>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/messages.h"

namespace tandem::distribute {
namespace {

constexpr const char* kEnqueue = "/tensorflow.eager.EagerService/Enqueue";
constexpr char kQueueTag = 3 << 3 | 2;  // EnqueueRequest.queue

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

}  // namespace

Bytes item_bytes(const proto::QueueItem& item) { return write_message(item); }

std::uint64_t RemoteTask::incarnation(const std::string& device) const {
  for (const proto::DeviceAttributes& known : devices_) {
    if (known.name == device) return static_cast<std::uint64_t>(known.incarnation);
  }
  return 0;
}

std::exception_ptr RemoteTask::closed_error() const {
  return std::make_exception_ptr(UnavailableError(cat("The connection to ", name_, " is over.")));
}

void RemoteTask::enqueue(Bytes item, ItemDone done) {
  std::vector<Item> batch;
  bool closed = false;
  {
    const MutexLock lock(mutex_);
    closed = closed_;
    if (!closed && sending_) {
      waiting_.push_back({std::move(item), std::move(done)});
      return;
    }
    sending_ = true;
  }
  if (closed) {
    if (done) done(closed_error(), {});
    return;
  }
  batch.push_back({std::move(item), std::move(done)});
  send(std::move(batch));
}

void RemoteTask::send(std::vector<Item> batch) {
  proto::EnqueueRequest head;
  head.context_id = static_cast<io::proto::Fixed64>(context_);
  Bytes request = write_message(head);
  for (Item& item : batch) {
    std::string tag(1, kQueueTag);
    put_varint(tag, item.bytes.size());
    request.append(std::move(tag));
    request.append(std::move(item.bytes));
    item.bytes = {};
  }
  const auto sent = std::make_shared<const std::vector<Item>>(std::move(batch));
  channel_->call(kEnqueue, std::move(request), {},
                 [self = shared_from_this(), sent](const Status& status, Bytes reply) {
                   self->end(*sent, status, std::move(reply));
                 });
}

void RemoteTask::end(const std::vector<Item>& batch, const Status& status, Bytes reply) {
  std::exception_ptr error;
  proto::EnqueueResponse response;
  if (status.ok()) {
    try {
      read_message(reply, response);
    } catch (...) {
      error = std::current_exception();
    }
  } else {
    error = Status{status.code, cat(status.message, " (on ", name_, ")"), {}}.error();
  }
  if (error) {
    const MutexLock lock(mutex_);
    if (!unreported_) unreported_ = error;
  }
  response.queue_response.resize(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].done) batch[i].done(error, response.queue_response[i]);
  }
  std::vector<Item> next;
  {
    const MutexLock lock(mutex_);
    next.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
    waiting_.clear();
    sending_ = !next.empty();
    if (!sending_) idle_.notify_all();
  }
  if (!next.empty()) send(std::move(next));
}

void RemoteTask::wait() {
  proto::QueueItem sync;
  sync.which_item = proto::QueueItem::Case::kSyncRemoteExecutorForStream;
  sync.sync_remote_executor_for_stream.make();
  const auto ran = std::make_shared<std::promise<std::exception_ptr>>();
  std::future<std::exception_ptr> end = ran->get_future();
  enqueue(item_bytes(sync), [ran](const std::exception_ptr& error, const proto::QueueResponse&) {
    ran->set_value(error);
  });
  const std::exception_ptr error = end.get();
  throw_unreported();
  if (error) std::rethrow_exception(error);
}

void RemoteTask::throw_unreported() {
  std::exception_ptr error;
  {
    const MutexLock lock(mutex_);
    error = std::exchange(unreported_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

void RemoteTask::mark_reported(const std::exception_ptr& error) {
  const MutexLock lock(mutex_);
  if (unreported_ == error) unreported_ = nullptr;
}

void RemoteTask::close() {
  std::deque<Item> dropped;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(waiting_);
    while (sending_) lock.wait(idle_);
  }
  for (const Item& item : dropped) {
    if (item.done) item.done(closed_error(), {});
  }
}

}  // namespace tandem::distribute
