#include "tandem/io/internal/table.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include <leveldb/comparator.h>
#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>

#include "tandem/core/error.h"
#include "tandem/fs/crc32c.h"

namespace tandem::io {
namespace {

constexpr std::size_t kBlockBytes = 262144;
constexpr std::size_t kTrailerBytes = 5;  // of a block: its compression, its checksum
constexpr std::size_t kFooterBytes = 48;
constexpr std::uint64_t kMagic = 0xdb4775248b80fb57u;
constexpr std::size_t kLargestBlock = std::size_t{1} << 31;  // LevelDB counts in 32 bits
// Keys may share what they begin with, so they can be longer together than the table. Names in
// real checkpoints share some fifty bytes for each entry of ten.
constexpr std::size_t kMaxKeyBytesPerByte = 100;

[[noreturn]] void fail(const char* why) { throw DataLossError(why); }

leveldb::Options table_options() {
  leveldb::Options options;
  options.comparator = leveldb::BytewiseComparator();
  options.compression = leveldb::kNoCompression;
  options.block_size = kBlockBytes;
  options.paranoid_checks = true;
  return options;
}

// A file of LevelDB that is written to memory.
class MemoryWritableFile final : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    bytes_.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
};

// … and one that is read from memory.
class MemoryReadableFile final : public leveldb::RandomAccessFile {
 public:
  explicit MemoryReadableFile(std::string_view bytes) : bytes_(bytes) {}
  leveldb::Status Read(std::uint64_t offset, std::size_t size, leveldb::Slice* result,
                       char*) const override {
    const std::string_view part = offset < bytes_.size()
                                      ? bytes_.substr(static_cast<std::size_t>(offset), size)
                                      : std::string_view();
    *result = leveldb::Slice(part.data(), part.size());
    return leveldb::Status::OK();
  }

 private:
  std::string_view bytes_;
};

void check(const leveldb::Status& status) {
  if (!status.ok()) throw DataLossError(status.ToString());
}

// ---- What LevelDB believes without looking: the lengths in a table. ----

std::uint32_t fixed32(std::string_view bytes, std::size_t at) {
  std::uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail("a number in the table is cut off or too long");
}

// Walks through a block as LevelDB will.
class BlockCheck {
 public:
  /// The place of the block, as footer and index block give it.
  BlockCheck(std::string_view table, std::string_view& handle) {
    const std::uint64_t offset = take_varint(handle);
    const std::uint64_t size = take_varint(handle);
    if (offset > table.size() || size > table.size() - offset ||
        table.size() - offset - size < kTrailerBytes) {
      fail("a block lies outside of the table");
    }
    const auto begin = static_cast<std::size_t>(offset);
    block_ = table.substr(begin, static_cast<std::size_t>(size));
    if (table[begin + block_.size()] != 0) {
      throw UnimplementedError("the table is compressed, which checkpoints are not");
    }
    const std::uint32_t stored = fixed32(table, begin + block_.size() + 1);
    if (fs::crc32c(table.substr(begin, block_.size() + 1)) != fs::unmask_crc32c(stored))
      fail("the checksum of a block does not match");
    find_entries();
  }

  std::size_t size() const { return block_.size(); }

  /// Calls `value` for the value of each entry; returns how long the keys are together.
  template <class F>
  std::size_t walk(F&& value) const {
    std::string_view left = entries_;
    std::size_t key_bytes = 0, key_size = 0;
    while (!left.empty()) {
      const std::uint64_t shared = take_varint(left);
      const std::uint64_t rest = take_varint(left);
      const std::uint64_t value_size = take_varint(left);
      if (shared > key_size || rest > left.size() || value_size > left.size() - rest)
        fail("an entry of the table is longer than its block");
      key_size = static_cast<std::size_t>(shared + rest);
      key_bytes += key_size;
      left.remove_prefix(static_cast<std::size_t>(rest));
      value(left.substr(0, static_cast<std::size_t>(value_size)));
      left.remove_prefix(static_cast<std::size_t>(value_size));
    }
    return key_bytes;
  }

 private:
  // A block ends in the offsets of entries whose keys are whole, and their number.
  void find_entries() {
    if (block_.size() < 4) fail("a block of the table is too short");
    if (block_.size() > kLargestBlock) fail("a block of the table is too large");
    const std::uint32_t count = fixed32(block_, block_.size() - 4);
    if (count == 0 || count > (block_.size() - 4) / 4) fail("a block of the table is damaged");
    const std::size_t end = block_.size() - 4 - std::size_t{count} * 4;
    entries_ = block_.substr(0, end);
    for (std::size_t i = 0; i < count; ++i) {
      if (fixed32(block_, end + 4 * i) > end) fail("a block of the table is damaged");
    }
    if (fixed32(block_, end) != 0) fail("a block of the table is damaged");
  }

  std::string_view block_;
  std::string_view entries_;
};

void check_table(std::string_view bytes) {
  if (bytes.size() < kFooterBytes) fail("the table is cut off");
  std::string_view footer = bytes.substr(bytes.size() - kFooterBytes);
  std::uint64_t magic;
  std::memcpy(&magic, footer.data() + kFooterBytes - sizeof(magic), sizeof(magic));
  if (magic != kMagic) fail("it is no table: its last bytes are not those of one");
  const std::string_view blocks = bytes.substr(0, bytes.size() - kFooterBytes);
  footer.remove_suffix(sizeof(magic));
  BlockCheck(blocks, footer).walk([](std::string_view) {});  // the block of further information
  std::size_t key_bytes = 0, data_bytes = 0;
  BlockCheck(blocks, footer).walk([&](std::string_view handle) {
    const BlockCheck block(blocks, handle);
    data_bytes += block.size();
    key_bytes += block.walk([](std::string_view) {});
    if (data_bytes > bytes.size()) fail("blocks of the table overlap");
    if (key_bytes / kMaxKeyBytesPerByte > bytes.size()) fail("the names in the table are too long");
  });
}

}  // namespace

std::string write_table(const std::map<std::string, std::string>& entries) {
  MemoryWritableFile file;
  leveldb::TableBuilder builder(table_options(), &file);
  for (const auto& [key, value] : entries) builder.Add(key, value);
  check(builder.Finish());
  return std::move(file.bytes());
}

void read_table(std::string_view bytes,
                const std::function<void(std::string_view key, std::string_view value)>& entry) {
  check_table(bytes);
  const MemoryReadableFile file(bytes);
  leveldb::Table* opened = nullptr;
  // LevelDB takes the file without const, and only reads it.
  check(leveldb::Table::Open(table_options(), const_cast<MemoryReadableFile*>(&file), bytes.size(),
                             &opened));
  const std::unique_ptr<leveldb::Table> table(opened);
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  const std::unique_ptr<leveldb::Iterator> at(table->NewIterator(options));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    entry({at->key().data(), at->key().size()}, {at->value().data(), at->value().size()});
  }
  check(at->status());
}

}  // namespace tandem::io
