#include "tandem/distribute/internal/rpc/grpc/buffers.h"

#include <memory>
#include <utility>
#include <vector>

namespace tandem::distribute {

namespace {
// Below this a copy costs less than what it takes to share.
constexpr std::size_t kMinShared = 1024;
}  // namespace

Bytes bytes_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  Bytes bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (grpc::Slice& slice : slices) {
    auto kept = std::make_shared<const grpc::Slice>(std::move(slice));
    bytes.append({reinterpret_cast<const char*>(kept->begin()), kept->size()}, kept);
  }
  return bytes;
}

grpc::ByteBuffer buffer_of(const Bytes& bytes) {
  std::vector<grpc::Slice> slices;
  slices.reserve(bytes.pieces().size());
  for (const Bytes::Piece& piece : bytes.pieces()) {
    if (piece.memory.size() < kMinShared) {
      slices.emplace_back(piece.memory.data(), piece.memory.size());
      continue;
    }
    auto owner = std::make_unique<std::shared_ptr<const void>>(piece.owner);
    slices.emplace_back(
        const_cast<char*>(piece.memory.data()), piece.memory.size(),
        [](void* held) {
          const std::unique_ptr<std::shared_ptr<const void>> released(
              static_cast<std::shared_ptr<const void>*>(held));
        },
        owner.get());
    static_cast<void>(owner.release());  // the slice's
  }
  return {slices.data(), slices.size()};
}

}  // namespace tandem::distribute
