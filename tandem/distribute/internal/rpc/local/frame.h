#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "tandem/distribute/internal/rpc/bytes.h"

/// What travels through a local socket: frames of a header, a short text and a body. Both ends are
/// processes of one machine, so numbers are as they are in memory.
namespace tandem::distribute {

struct FrameHeader {
  enum Kind : std::uint32_t {
    kCall = 1,     ///< text: the method; number: nanoseconds until its deadline, 0 without
    kCancel = 2,   ///< the caller waits no longer
    kReply = 3,    ///< number: the code; text: its message and, at the end, the details
    kRefused = 4,  ///< the call has not begun, and may be made elsewhere
    kGoAway = 5,   ///< later calls will be refused
    kRegion = 6,   ///< memory to share: its descriptor comes along; number: its size
    kForget = 7,   ///< memory that is not used any more
  };

  std::uint32_t magic = kMagic;
  std::uint32_t kind = kCall;
  std::uint64_t call = 0;  ///< the client's number of it
  std::uint64_t body_size = 0;
  std::uint64_t number = 0;
  std::uint32_t text_size = 0;
  std::uint32_t details_size = 0;  ///< of the text
  std::uint32_t region = 0;        ///< where the body is; 0: it follows
  std::uint32_t offset = 0;        ///< of the body in the region

  static constexpr std::uint32_t kMagic = 0x314c6454;
  static constexpr std::uint32_t kMaxText = 1 << 20;
};
static_assert(sizeof(FrameHeader) == 48 && std::is_trivially_copyable_v<FrameHeader>);

struct Frame {
  FrameHeader head;
  std::string text;
  Bytes body;  ///< what followed in the socket

  std::string_view message() const {
    return std::string_view(text).substr(0, text.size() - head.details_size);
  }
  std::string_view details() const {
    return std::string_view(text).substr(text.size() - head.details_size);
  }
};

/// Takes frames out of a stream of bytes that may be any. It allocates a small multiple of what has
/// come, whatever sizes are announced.
class FrameReader {
 public:
  FrameReader();

  /// Where the next bytes belong; never empty.
  std::span<char> space();
  /// So many have been put there.
  void received(std::size_t count);

  /// True if there is a whole frame. Throws InvalidArgumentError at what is none; the stream cannot
  /// be read any further.
  bool next(Frame& frame);

 private:
  static constexpr std::size_t kBufferSize = 64 * 1024;

  bool read_head();
  void grow_body();
  bool reads_body() const { return has_head_ && buffered() == 0 && body_; }
  std::size_t buffered() const { return end_ - begin_; }
  bool body_is_whole() const { return body_received_ == frame_.head.body_size; }

  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = kBufferSize;
  std::size_t begin_ = 0, end_ = 0;  // of what has come and is not taken

  bool has_head_ = false;
  Frame frame_;
  std::shared_ptr<char[]> body_;
  std::size_t body_capacity_ = 0;
  std::uint64_t body_received_ = 0;
};

}  // namespace tandem::distribute
