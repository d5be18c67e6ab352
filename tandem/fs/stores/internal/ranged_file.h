#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tandem/core/cancellation.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/io_scope.h"
#include "tandem/fs/stores.h"
#include "tandem/fs/stores/internal/workers.h"

namespace tandem::fs {

/// What the files of a store share.
struct StoreContext {
  StoreContext(const StoreOptions& given, IoScope::Source source)
      : options(given), current(source), budget(given.memory_bytes), workers(given.connections) {}

  std::shared_ptr<const Cancellation> cancellation() const { return current ? current() : nullptr; }

  const StoreOptions options;
  const IoScope::Source current;
  MemoryBudget budget;
  Workers workers;
};

/// Reads bytes from `offset` on until `out` is full or the content ends. Called by several threads.
using ReadRange =
    std::function<std::size_t(std::uint64_t offset, std::span<char> out,
                              const std::shared_ptr<const Cancellation>& cancellation)>;

/// A file of known size that is read by ranges. What is read in order is fetched ahead by several
/// transfers, the more the longer it lasts (StoreOptions::read_ahead_bytes); large reads are
/// divided among transfers that write into the caller's memory; small reads elsewhere fetch just
/// what they ask for. Thread-safe.
class RangedFile final : public ReadableFile {
 public:
  /// `head`: the first bytes, as far as opening the file has shown them.
  RangedFile(std::string path, std::uint64_t size, std::string head, ReadRange read,
             std::shared_ptr<StoreContext> context);
  ~RangedFile() override;

  std::size_t read(std::uint64_t offset, std::span<char> out) const override;
  std::optional<std::uint64_t> known_size() const override;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace tandem::fs
