#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "tandem/core/thread_annotations.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/stores/internal/object_store.h"
#include "tandem/fs/stores/internal/ranged_file.h"

namespace tandem::fs {

/// Sends an object: in one request what is smaller than a part, else in parts that are sent while
/// more is appended. Used by one thread at a time.
class ObjectWriter {
 public:
  ObjectWriter(std::shared_ptr<ObjectStore> store, ObjectName object,
               std::shared_ptr<StoreContext> context);
  /// Discards what is not complete.
  ~ObjectWriter();
  ObjectWriter(const ObjectWriter&) = delete;
  ObjectWriter& operator=(const ObjectWriter&) = delete;

  void append(std::string_view bytes);
  /// Sends all parts; what is smaller than one waits for `complete`.
  void send();
  /// Makes all that was appended the object's content.
  void complete();
  std::uint64_t size() const { return size_; }

 private:
  // The parts under way, which workers share.
  struct Sending {
    Mutex mutex;
    std::condition_variable changed;
    int running TANDEM_GUARDED_BY(mutex) = 0;
    std::exception_ptr error TANDEM_GUARDED_BY(mutex);
  };

  void send_part(bool last);
  void wait_until(int most_running);
  void discard() noexcept;

  const std::shared_ptr<ObjectStore> store_;
  const ObjectName object_;
  const std::shared_ptr<StoreContext> context_;
  const std::shared_ptr<Sending> sending_ = std::make_shared<Sending>();
  const std::shared_ptr<Cancellation> stop_;
  std::shared_ptr<Upload> upload_;
  std::string buffer_;
  std::size_t part_bytes_;
  int next_part_ = 0;
  std::uint64_t size_ = 0;
  bool sent_ = false;  // the last part
  bool complete_ = false;
};

/// A staged file of a store: its commit completes the upload.
class StagedObject final : public StagedFile {
 public:
  StagedObject(std::shared_ptr<ObjectStore> store, ObjectName object,
               std::shared_ptr<StoreContext> context);
  void append(std::string_view bytes) override;
  void seal() override;
  void commit() override;

 private:
  const std::string path_;
  ObjectWriter writer_;
  bool sealed_ = false;
};

/// A file that is written in order and may be made visible in between (`sync`), as logs are.
class WritableObject final : public WritableFile {
 public:
  WritableObject(std::shared_ptr<ObjectStore> store, ObjectName object,
                 std::shared_ptr<StoreContext> context);
  ~WritableObject() override;
  void append(std::string_view bytes) override;
  void sync() override;
  void flush() override { sync(); }
  void close() override;

 private:
  const std::shared_ptr<ObjectStore> store_;
  const ObjectName object_;
  const std::shared_ptr<StoreContext> context_;
  std::unique_ptr<ObjectWriter> writer_;  // until the first sync
  std::uint64_t visible_ = 0;             // bytes of the object after that
  std::string more_;                      // appended since the last sync
  bool closed_ = false;
};

}  // namespace tandem::fs
