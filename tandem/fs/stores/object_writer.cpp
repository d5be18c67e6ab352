#include "tandem/fs/stores/internal/object_writer.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::fs {
namespace {

// A store takes 10,000 parts: their size doubles every so many.
constexpr int kPartsOfOneSize = 1000;
// Parts of one object that are sent at a time.
constexpr int kMaxRunning = 4;

}  // namespace

ObjectWriter::ObjectWriter(std::shared_ptr<ObjectStore> store, ObjectName object,
                           std::shared_ptr<StoreContext> context)
    : store_(std::move(store)),
      object_(std::move(object)),
      context_(std::move(context)),
      stop_(std::make_shared<Cancellation>(context_->cancellation(), nullptr)),
      part_bytes_(context_->options.part_bytes) {}

ObjectWriter::~ObjectWriter() {
  if (!complete_) discard();
}

void ObjectWriter::discard() noexcept {
  stop_->cancel();
  {
    MutexLock lock(sending_->mutex);
    while (sending_->running > 0) lock.wait(sending_->changed);
  }
  if (upload_) upload_->abort();
  upload_.reset();
}

void ObjectWriter::append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (buffer_.size() == part_bytes_) send_part(false);
    if (buffer_.capacity() < part_bytes_ && buffer_.size() + bytes.size() > part_bytes_ / 4) {
      buffer_.reserve(part_bytes_);
    }
    const std::string_view some = bytes.substr(0, part_bytes_ - buffer_.size());
    buffer_ += some;
    size_ += some.size();
    bytes.remove_prefix(some.size());
  }
}

void ObjectWriter::wait_until(int most_running) {
  MutexLock lock(sending_->mutex);
  while (sending_->running > most_running && !sending_->error) lock.wait(sending_->changed);
  if (sending_->error) std::rethrow_exception(sending_->error);
}

void ObjectWriter::send_part(bool last) {
  if (!upload_) upload_ = store_->begin_upload(object_, stop_);
  wait_until(upload_->parallel() ? kMaxRunning - 1 : 0);
  auto part = std::make_shared<std::string>(std::exchange(buffer_, {}));
  const int number = next_part_++;
  if (next_part_ % kPartsOfOneSize == 0) part_bytes_ *= 2;
  // Parts that others wait for anyway are sent whatever the budget; it makes readers fetch less.
  context_->budget.take(part->size());
  {
    const MutexLock lock(sending_->mutex);
    ++sending_->running;
  }
  context_->workers.submit(
      [sending = sending_, upload = upload_, context = context_, part, number, last, stop = stop_] {
        std::exception_ptr error;
        try {
          upload->put_part(number, *part, last, stop);
        } catch (...) {
          error = std::current_exception();
        }
        context->budget.release(part->size());
        const MutexLock lock(sending->mutex);
        --sending->running;
        if (error && !sending->error) sending->error = error;
        sending->changed.notify_all();
      });
}

void ObjectWriter::send() {
  if (sent_ || (!upload_ && buffer_.size() < part_bytes_)) return;
  send_part(true);
  wait_until(0);
  sent_ = true;
}

void ObjectWriter::complete() {
  if (complete_) return;
  send();
  if (upload_) {
    upload_->complete(stop_);
  } else {
    store_->put(object_, buffer_, stop_);
  }
  complete_ = true;
  upload_.reset();
  buffer_ = {};
}

StagedObject::StagedObject(std::shared_ptr<ObjectStore> store, ObjectName object,
                           std::shared_ptr<StoreContext> context)
    : path_(object.path), writer_(std::move(store), std::move(object), std::move(context)) {}

void StagedObject::append(std::string_view bytes) {
  if (sealed_) throw FailedPreconditionError(cat(path_, "; The file is complete"));
  writer_.append(bytes);
}

void StagedObject::seal() {
  sealed_ = true;
  writer_.send();
}

void StagedObject::commit() {
  sealed_ = true;
  writer_.complete();
}

WritableObject::WritableObject(std::shared_ptr<ObjectStore> store, ObjectName object,
                               std::shared_ptr<StoreContext> context)
    : store_(store),
      object_(object),
      context_(context),
      writer_(std::make_unique<ObjectWriter>(std::move(store), std::move(object),
                                             std::move(context))) {}

WritableObject::~WritableObject() = default;

void WritableObject::append(std::string_view bytes) {
  if (closed_) throw FailedPreconditionError(cat(object_.path, "; The file is closed"));
  if (writer_) return writer_->append(bytes);
  more_ += bytes;
  if (more_.size() >= context_->options.part_bytes) sync();
}

void WritableObject::sync() {
  if (writer_) {
    writer_->complete();
    visible_ = writer_->size();
    writer_.reset();
  } else if (!more_.empty()) {
    store_->append(object_, visible_, more_, context_->cancellation());
    visible_ += more_.size();
    more_.clear();
  }
}

void WritableObject::close() {
  if (closed_) return;
  sync();
  closed_ = true;
}

}  // namespace tandem::fs
