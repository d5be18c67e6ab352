#include "tandem/distribute/internal/rpc/bytes.h"

#include <utility>

namespace tandem::distribute {

void Bytes::append(std::string text) {
  if (text.empty()) return;
  auto kept = std::make_shared<const std::string>(std::move(text));
  append(*kept, kept);
}

void Bytes::append(std::string_view memory, std::shared_ptr<const void> owner) {
  if (memory.empty()) return;
  size_ += memory.size();
  pieces_.push_back({memory, std::move(owner)});
}

void Bytes::append(Bytes other) {
  size_ += other.size_;
  for (Piece& piece : other.pieces_) pieces_.push_back(std::move(piece));
}

std::string_view Bytes::flat() {
  if (pieces_.empty()) return {};
  if (pieces_.size() > 1) {
    auto joined = std::make_shared<std::string>();
    joined->reserve(size_);
    for (const Piece& piece : pieces_) *joined += piece.memory;
    pieces_.clear();
    pieces_.push_back({*joined, joined});
  }
  return pieces_.front().memory;
}

const std::shared_ptr<const void>& Bytes::owner() const {
  static const std::shared_ptr<const void> none;
  return pieces_.empty() ? none : pieces_.front().owner;
}

}  // namespace tandem::distribute
