#include "tandem/fs/io_scope.h"

#include <atomic>
#include <utility>

namespace tandem::fs {
namespace {

thread_local const IoScope* innermost = nullptr;
std::atomic<IoScope::Source> outside{nullptr};

}  // namespace

IoScope::IoScope(std::shared_ptr<const Cancellation> cancellation)
    : cancellation_(std::move(cancellation)), outer_(std::exchange(innermost, this)) {}

IoScope::~IoScope() { innermost = outer_; }

std::shared_ptr<const Cancellation> IoScope::current() {
  if (innermost) return innermost->cancellation_;
  const Source source = outside.load(std::memory_order_acquire);
  return source ? source() : nullptr;
}

void IoScope::set_source(Source source) { outside.store(source, std::memory_order_release); }

}  // namespace tandem::fs
