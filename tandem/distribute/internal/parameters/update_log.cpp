#include "tandem/distribute/internal/parameters/update_log.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/fs/atomic_file.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/mapped_file.h"
#include "tandem/fs/record_file.h"

namespace tandem::distribute {
namespace {

constexpr const char* kKinds[] = {"snapshot", "log", "incoming"};

template <class T>
std::string little_endian(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// A record as TFRecord files hold it.
template <class File>
void append_record(File& file, const Bytes& record) {
  const std::string size = little_endian<std::uint64_t>(record.size());
  file.append(size + little_endian(fs::mask_crc32c(fs::crc32c(size))));
  std::uint32_t crc = 0;
  for (const Bytes::Piece& piece : record.pieces()) {
    file.append(piece.memory);
    crc = fs::crc32c(piece.memory, crc);
  }
  file.append(little_endian(fs::mask_crc32c(crc)));
}

// The record of a file that has one, where it lies: a reader would hold it a second time.
std::string_view only_record(std::string_view file, const std::string& path) {
  constexpr std::size_t kHeader = 12, kFooter = 4;
  const auto damaged = [&] { return DataLossError(cat("The snapshot ", path, " is damaged.")); };
  const auto number = [&](auto value, std::size_t at) {
    std::memcpy(&value, file.data() + at, sizeof(value));
    return value;
  };
  if (file.size() < kHeader + kFooter) throw damaged();
  const std::size_t size = file.size() - kHeader - kFooter;
  const std::string_view record = file.substr(kHeader, size);
  if (number(std::uint64_t{}, 0) != size ||
      number(std::uint32_t{}, 8) != fs::mask_crc32c(fs::crc32c(file.substr(0, 8))) ||
      number(std::uint32_t{}, kHeader + size) != fs::mask_crc32c(fs::crc32c(record)))
    throw damaged();
  return record;
}

// The numbers N of files "KIND-N".
std::vector<std::int64_t> generations(fs::FileSystem& files, const std::string& folder,
                                      const std::string& kind) {
  std::vector<std::int64_t> found;
  for (const std::string& name : files.list(folder)) {
    if (!name.starts_with(kind + "-")) continue;
    std::int64_t number = 0;
    const char* end = name.data() + name.size();
    const auto [next, error] = std::from_chars(name.data() + kind.size() + 1, end, number);
    if (error == std::errc() && next == end) found.push_back(number);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

UpdateLog::UpdateLog(std::string folder, RunLater run_later)
    : folder_(std::move(folder)),
      run_later_(std::move(run_later)),
      files_(fs::file_system_of(folder_)),
      self_(std::make_shared<UpdateLog*>(this)) {
  files_.make_directories(folder_);
  for (const char* kind : kKinds) {
    for (const std::int64_t generation : generations(files_, folder_, kind))
      generation_ = std::max(generation_, generation);
  }
  if (!run_later_) writer_ = std::thread([this] { write_all(); });
}

UpdateLog::~UpdateLog() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (writer_.joinable()) writer_.join();
}

std::string UpdateLog::path(const char* kind, std::int64_t generation) const {
  return cat(folder_, "/", kind, "-", generation);
}

bool UpdateLog::recover(const Reader& reader) {
  const std::vector<std::int64_t> snapshots = generations(files_, folder_, "snapshot");
  if (snapshots.empty()) return false;
  const std::int64_t first = snapshots.back();
  {
    const std::string file = path("snapshot", first);
    const fs::MappedFile state(file);
    reader.snapshot(only_record(state.bytes(), file));
  }
  fs::RecordReaderOptions options;  // whatever was written is read
  options.max_record_bytes = std::numeric_limits<std::int64_t>::max();
  const auto read = [&](const std::string& file) {
    std::string_view bytes;
    fs::RecordReader log(file, options);
    try {
      while (log.next(bytes)) {
        if (!reader.record(bytes)) continue;
        const MutexLock lock(mutex_);
        bytes_ += bytes.size();
      }
    } catch (const DataLossError&) {  // it was being written when the process ended
    }
  };
  // A state that was on its way here counts only if it has arrived.
  for (const char* kind : {"incoming", "log"}) {
    const auto found = generations(files_, folder_, kind);
    if (std::binary_search(found.begin(), found.end(), first)) read(path(kind, first));
  }
  reader.state_end();
  for (const std::int64_t generation : generations(files_, folder_, "log")) {
    if (generation > first) read(path("log", generation));
  }
  return true;
}

void UpdateLog::append(Bytes update, Durable durable) {
  add({Kind::kUpdate, std::move(update), std::move(durable)});
}

void UpdateLog::append_part(Bytes part, Durable durable) {
  add({Kind::kPart, std::move(part), std::move(durable)});
}

void UpdateLog::begin_state(Bytes head, bool incoming, Durable durable) {
  add({incoming ? Kind::kIncomingHead : Kind::kHead, std::move(head), std::move(durable)});
}

void UpdateLog::complete_state(Bytes snapshot, Durable durable) {
  add({Kind::kComplete, std::move(snapshot), std::move(durable)});
}

void UpdateLog::abandon_state() { add({Kind::kAbandon, {}, {}}); }

void UpdateLog::add(Item item) {
  {
    const MutexLock lock(mutex_);
    const bool begins = item.kind == Kind::kHead || item.kind == Kind::kIncomingHead;
    if (begins) bytes_ = 0;
    if (item.kind == Kind::kUpdate) bytes_ += item.bytes.size();
    waiting_.push_back(std::move(item));
  }
  if (!run_later_) return changed_.notify_one();
  run_later_([weak = std::weak_ptr(self_)] {
    const auto self = weak.lock();
    if (!self) return;
    std::deque<Item> items;
    {
      const MutexLock lock((*self)->mutex_);
      items.swap((*self)->waiting_);
    }
    (*self)->write(std::move(items));
  });
}

std::uint64_t UpdateLog::bytes_since_state() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

// A log of its own for each process: the last one may end in a record that was cut off.
void UpdateLog::begin_log(const char* kind) {
  ++generation_;
  log_ = files_.create(path(kind, generation_));
  files_.sync_directory(folder_);
}

void UpdateLog::write_snapshot(const Bytes& state) {
  fs::AtomicFile file(path("snapshot", generation_));
  append_record(file, state);
  file.finish();
  files_.sync_directory(folder_);
  remove_older();
}

void UpdateLog::remove_older() {
  for (const char* kind : kKinds) {
    for (const std::int64_t old : generations(files_, folder_, kind)) {
      if (old < generation_) files_.remove(path(kind, old));
    }
  }
}

void UpdateLog::write_all() {
  for (;;) {
    std::deque<Item> items;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && !closing_) lock.wait(changed_);
      if (waiting_.empty()) return;
      items.swap(waiting_);
    }
    write(std::move(items));
  }
}

void UpdateLog::sync_log(bool& is_synced) {
  if (!is_synced) log_->sync();
  is_synced = true;
}

// `is_synced` is whether everything in the log would survive a crash.
void UpdateLog::write(const Item& item, bool& is_synced) {
  switch (item.kind) {
    case Kind::kUpdate:
    case Kind::kPart:
      if (lost_) std::rethrow_exception(lost_);
      if (!log_) begin_log("log");
      append_record(*log_, item.bytes);
      is_synced = false;
      return;
    case Kind::kHead:
    case Kind::kIncomingHead:
      sync_log(is_synced);
      lost_ = nullptr;
      lost_state_ = false;
      has_state_ = true;
      is_incoming_ = item.kind == Kind::kIncomingHead;
      begin_log(is_incoming_ ? "incoming" : "log");
      append_record(*log_, item.bytes);
      is_synced = false;
      return;
    case Kind::kComplete:
      if (lost_) std::rethrow_exception(lost_);
      if (!has_state_) throw InternalError("The state was not written.");
      sync_log(is_synced);
      write_snapshot(item.bytes);
      has_state_ = is_incoming_ = false;
      return;
    case Kind::kAbandon:
      sync_log(is_synced);
      log_.reset();
      lost_ = nullptr;
      lost_state_ = false;
      has_state_ = is_incoming_ = false;
      return;
  }
}

void UpdateLog::write(std::deque<Item> items) {
  bool is_synced = true;
  std::size_t first_unsynced = 0;
  const auto report = [&](std::size_t end, const std::exception_ptr& error) {
    for (; first_unsynced < end; ++first_unsynced) {
      if (items[first_unsynced].durable) items[first_unsynced].durable(error);
    }
  };
  // Behind a record that may be cut off nothing would be read: a new log begins. Without a part an
  // incoming state, whose updates are for no other, cannot be completed.
  const auto fail = [&](std::size_t end) {
    const std::exception_ptr error = std::current_exception();
    if (is_incoming_) lost_ = error;
    lost_state_ = lost_ != nullptr;
    has_state_ = false;
    log_.reset();
    is_synced = true;
    report(end, error);
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    try {
      write(items[i], is_synced);
      if (is_synced) report(i + 1, nullptr);
    } catch (...) {
      fail(i + 1);
    }
  }
  try {
    sync_log(is_synced);
    report(items.size(), nullptr);
  } catch (...) {
    fail(items.size());
  }
}

}  // namespace tandem::distribute
