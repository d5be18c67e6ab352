#include "tandem/fs/stores/internal/ranged_file.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/thread_annotations.h"

namespace tandem::fs {

struct RangedFile::State : std::enable_shared_from_this<RangedFile::State> {
  // A piece of the file, fetched by a worker.
  struct Block {
    explicit Block(std::shared_ptr<StoreContext> of, std::size_t bytes)
        : context(std::move(of)), size(bytes), data(new char[bytes]) {}
    ~Block() { context->budget.release(size); }

    const std::shared_ptr<StoreContext> context;
    const std::size_t size;
    const std::unique_ptr<char[]> data;
    bool ready = false;  // under the file's lock
    std::exception_ptr error = nullptr;
  };

  std::string path;
  std::uint64_t size = 0;
  std::string head;
  ReadRange read_range;
  std::shared_ptr<StoreContext> context;
  std::size_t block_bytes = 0;
  // Ends the transfers of a file that is closed.
  const std::shared_ptr<Cancellation> closed = std::make_shared<Cancellation>();

  Mutex mutex;
  std::condition_variable changed;
  std::map<std::uint64_t, std::shared_ptr<Block>> blocks TANDEM_GUARDED_BY(mutex);
  std::uint64_t next TANDEM_GUARDED_BY(mutex) = 0;  // where reading in order goes on
  std::size_t window TANDEM_GUARDED_BY(mutex) = 1;  // blocks fetched ahead
  std::uint64_t last_index TANDEM_GUARDED_BY(mutex) = ~std::uint64_t{0};  // of the block last read

  std::size_t fetch(std::uint64_t offset, std::span<char> out,
                    const std::shared_ptr<const Cancellation>& cancellation) const {
    const std::size_t got = read_range(offset, out, cancellation);
    if (got < out.size()) {
      throw DataLossError(cat(path, "; The file ends at byte ", offset + got, " of ", size,
                              ", which it had when it was opened. Was it changed meanwhile?"));
    }
    return got;
  }

  // Divided among transfers, of which the caller does some.
  void read_large(std::uint64_t offset, std::span<char> out) {
    struct Parts {
      std::atomic<std::size_t> next{0};
      Mutex mutex;
      std::condition_variable changed;
      std::size_t done TANDEM_GUARDED_BY(mutex) = 0;
      std::exception_ptr error TANDEM_GUARDED_BY(mutex);
    };
    const auto parts = std::make_shared<Parts>();
    const std::size_t part = 2 * block_bytes;
    const std::size_t count = (out.size() + part - 1) / part;
    // One failure ends the others.
    const auto stop = std::make_shared<Cancellation>(closed, context->cancellation());
    const auto work = [this, parts, part, count, stop, offset, out] {
      for (;;) {
        const std::size_t i = parts->next.fetch_add(1);
        if (i >= count) return;
        std::exception_ptr error;
        try {
          const std::span<char> piece =
              out.subspan(i * part, std::min(part, out.size() - i * part));
          fetch(offset + i * part, piece, stop);
        } catch (...) {
          error = std::current_exception();
        }
        bool first = false;
        {
          const MutexLock lock(parts->mutex);
          ++parts->done;
          first = error && !parts->error;
          if (first) parts->error = error;
          parts->changed.notify_all();
        }
        if (first) stop->cancel();
      }
    };
    const std::size_t helpers =
        std::min(count, static_cast<std::size_t>(context->options.connections)) - 1;
    // A helper that begins late finds no part left, and touches nothing but `parts`.
    for (std::size_t i = 0; i < helpers; ++i) {
      context->workers.submit([keep = shared_from_this(), work] { work(); });
    }
    work();
    MutexLock lock(parts->mutex);
    while (parts->done < count) lock.wait(parts->changed);
    if (parts->error) std::rethrow_exception(parts->error);
  }

  // Begins the transfer of a block unless there is one; false where memory is used up.
  bool want(std::uint64_t index, bool needed) TANDEM_REQUIRES(mutex) {
    if (index * block_bytes >= size || blocks.count(index) > 0) return true;
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, size - index * block_bytes));
    if (needed) {
      context->budget.take(bytes);
    } else if (!context->budget.try_take(bytes)) {
      return false;
    }
    std::shared_ptr<Block> block;
    try {
      block = std::make_shared<Block>(context, bytes);
    } catch (...) {
      context->budget.release(bytes);
      throw;
    }
    blocks[index] = block;
    context->workers.submit([self = shared_from_this(), block, index] {
      std::exception_ptr error;
      try {
        self->fetch(index * self->block_bytes, {block->data.get(), block->size}, self->closed);
      } catch (...) {
        error = std::current_exception();
      }
      const MutexLock lock(self->mutex);
      block->error = error;
      block->ready = true;
      self->changed.notify_all();
    });
    return true;
  }

  std::shared_ptr<Block> wait_for(std::uint64_t index,
                                  const std::shared_ptr<const Cancellation>& cancellation) {
    const CancellationCallback wake(cancellation, [this] {
      const MutexLock lock(mutex);
      changed.notify_all();
    });
    MutexLock lock(mutex);
    want(index, true);
    const std::shared_ptr<Block> block = blocks[index];
    for (std::size_t ahead = 1; ahead <= window && want(index + ahead, false); ++ahead) {
    }
    while (!block->ready) {
      if (cancellation) cancellation->check();
      lock.wait(changed);
    }
    if (block->error) {
      blocks.erase(index);  // the next read tries again
      std::rethrow_exception(block->error);
    }
    // Those behind are not read again in order, and those far ahead belong to another place.
    for (auto at = blocks.begin(); at != blocks.end();) {
      const bool far = at->first < index || at->first > index + max_window() + 1;
      at = far && at->second->ready ? blocks.erase(at) : std::next(at);
    }
    return block;
  }

  std::size_t max_window() const {
    return std::max<std::size_t>(1, context->options.read_ahead_bytes / block_bytes);
  }

  void read_in_order(std::uint64_t offset, std::span<char> out) {
    const std::shared_ptr<const Cancellation> cancellation = context->cancellation();
    for (std::size_t got = 0; got < out.size();) {
      const std::uint64_t at = offset + got;
      const std::uint64_t index = at / block_bytes;
      {
        const MutexLock lock(mutex);
        if (index != last_index) window = std::min(window * 2, max_window());
        last_index = index;
      }
      const std::shared_ptr<Block> block = wait_for(index, cancellation);
      const auto from = static_cast<std::size_t>(at - index * block_bytes);
      const std::size_t count = std::min(out.size() - got, block->size - from);
      std::memcpy(out.data() + got, block->data.get() + from, count);
      got += count;
    }
  }
};

RangedFile::RangedFile(std::string path, std::uint64_t size, std::string head, ReadRange read,
                       std::shared_ptr<StoreContext> context)
    : state_(std::make_shared<State>()) {
  state_->path = std::move(path);
  state_->size = size;
  state_->head = std::move(head);
  state_->read_range = std::move(read);
  // Twice as many blocks are read ahead as transfers run: when one ends, the next begins without
  // waiting for the reader.
  const StoreOptions& options = context->options;
  state_->block_bytes =
      std::clamp(options.read_ahead_bytes / (2 * static_cast<std::size_t>(options.connections)),
                 std::size_t{256} << 10, options.part_bytes / 2);
  state_->context = std::move(context);
}

RangedFile::~RangedFile() {
  state_->closed->cancel();
  const MutexLock lock(state_->mutex);
  state_->blocks.clear();
}

std::optional<std::uint64_t> RangedFile::known_size() const { return state_->size; }

std::size_t RangedFile::read(std::uint64_t offset, std::span<char> out) const {
  State& s = *state_;
  if (offset >= s.size || out.empty()) return 0;
  out = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), s.size - offset)));
  const std::size_t whole = out.size();
  bool in_order = false;
  {
    const MutexLock lock(s.mutex);
    // A small gap is a header that was skipped.
    constexpr std::uint64_t kGap = std::uint64_t{64} << 10;
    in_order = offset <= s.next + kGap && s.next <= offset + kGap;
    if (!in_order) in_order = s.blocks.count(offset / s.block_bytes) > 0;
    s.next = offset + whole;
  }
  if (offset < s.head.size()) {
    const std::size_t count =
        std::min(out.size(), s.head.size() - static_cast<std::size_t>(offset));
    std::memcpy(out.data(), s.head.data() + offset, count);
    out = out.subspan(count);
    offset += count;
    if (out.empty()) return whole;
  }
  if (out.size() >= 4 * s.block_bytes) {
    s.read_large(offset, out);
  } else if (in_order) {
    s.read_in_order(offset, out);
  } else {
    s.fetch(offset, out, s.context->cancellation());
  }
  return whole;
}

}  // namespace tandem::fs
