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

// Transfers may outlive the scope for a moment, so they get a cancellation of their own.
IoScope::IoScope(const Cancellation* borrowed)
    : cancellation_(current()), borrowed_(borrowed), outer_(std::exchange(innermost, this)) {
  if (!borrowed_) return;
  const auto own = std::make_shared<Cancellation>();
  token_ = borrowed_->register_callback([own] { own->cancel(); });
  if (token_ == 0) own->cancel(borrowed_->reason());
  cancellation_ = own;
}

IoScope::~IoScope() {
  innermost = outer_;
  if (borrowed_) borrowed_->deregister_callback(token_);
}

std::shared_ptr<const Cancellation> IoScope::current() {
  if (innermost) return innermost->cancellation_;
  const Source source = outside.load(std::memory_order_acquire);
  return source ? source() : nullptr;
}

void IoScope::set_source(Source source) { outside.store(source, std::memory_order_release); }

}  // namespace tandem::fs
