#include "tandem/distribute/internal/parameters/update_log.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/fs/atomic_file.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/mapped_file.h"
#include "tandem/fs/record_file.h"

namespace tandem::distribute {
namespace {

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
  for (const char* kind : {"snapshot", "log"}) {
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

bool UpdateLog::recover(const std::function<void(std::string_view)>& snapshot,
                        const std::function<void(std::string_view)>& record) {
  const std::vector<std::int64_t> snapshots = generations(files_, folder_, "snapshot");
  if (snapshots.empty()) return false;
  {
    const std::string file = path("snapshot", snapshots.back());
    const fs::MappedFile state(file);
    snapshot(only_record(state.bytes(), file));
  }
  std::string_view bytes;
  for (const std::int64_t generation : generations(files_, folder_, "log")) {
    if (generation < snapshots.back()) continue;
    fs::RecordReader log(path("log", generation));
    try {
      while (log.next(bytes)) {
        record(bytes);
        const MutexLock lock(mutex_);
        bytes_ += bytes.size();
      }
    } catch (const DataLossError&) {  // it was being written when the process ended
    }
  }
  return true;
}

void UpdateLog::append(Bytes record, Durable durable) {
  add({std::move(record), false, std::move(durable)});
}

void UpdateLog::snapshot(Bytes state, Durable durable) {
  add({std::move(state), true, std::move(durable)});
}

void UpdateLog::add(Item item) {
  {
    const MutexLock lock(mutex_);
    bytes_ = item.is_snapshot ? 0 : bytes_ + item.bytes.size();
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

std::uint64_t UpdateLog::bytes_since_snapshot() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

// A log of its own for each process: the last one may end in a record that was cut off.
void UpdateLog::begin_log() {
  ++generation_;
  log_ = files_.create(path("log", generation_));
  files_.sync_directory(folder_);
}

void UpdateLog::write_snapshot(const Bytes& state) {
  begin_log();
  fs::AtomicFile file(path("snapshot", generation_));
  append_record(file, state);
  file.finish();
  files_.sync_directory(folder_);
  for (const char* kind : {"snapshot", "log"}) {
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

void UpdateLog::write(std::deque<Item> items) {
  std::exception_ptr error;
  std::size_t first_unsynced = 0;
  const auto report = [&](std::size_t end) {
    for (; first_unsynced < end; ++first_unsynced) items[first_unsynced].durable(error);
  };
  try {
    bool written = false;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].is_snapshot) {
        if (written) log_->sync();
        report(i);
        written = false;
        write_snapshot(items[i].bytes);
        report(i + 1);
      } else {
        if (!log_) begin_log();
        append_record(*log_, items[i].bytes);
        written = true;
      }
    }
    if (written) log_->sync();
  } catch (...) {
    error = std::current_exception();
  }
  report(items.size());
}

}  // namespace tandem::distribute
