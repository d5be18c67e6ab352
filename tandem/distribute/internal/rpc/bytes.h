#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::distribute {

/// A message as it travels: pieces of memory, in order, that are shared instead of copied. Tensors
/// are pieces of their own, which point into the tensor's buffer.
class Bytes {
 public:
  struct Piece {
    std::string_view memory;
    std::shared_ptr<const void> owner;  ///< keeps the memory
  };

  Bytes() = default;
  explicit Bytes(std::string text) { append(std::move(text)); }

  void append(std::string text);
  void append(std::string_view memory, std::shared_ptr<const void> owner);
  void append(Bytes other);

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

  /// All of it in one piece, joined if need be; the view is good as long as `owner()` is held.
  std::string_view flat();
  /// Keeps what `flat` has returned.
  const std::shared_ptr<const void>& owner() const;

 private:
  std::vector<Piece> pieces_;
  std::size_t size_ = 0;
};

}  // namespace tandem::distribute
