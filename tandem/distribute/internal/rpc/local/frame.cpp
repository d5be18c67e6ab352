#include "tandem/distribute/internal/rpc/local/frame.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

// A body of up to so many bytes is allocated before it has come.
constexpr std::size_t kMaxPreallocated = std::size_t{1} << 20;

void check(const FrameHeader& head) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw InvalidArgumentError(cat("A frame of a local connection ", what, "."));
  };
  require(head.magic == FrameHeader::kMagic, "does not begin as one");
  require(head.kind >= FrameHeader::kCall && head.kind <= FrameHeader::kForget,
          "is of an unknown kind");
  require(head.text_size <= FrameHeader::kMaxText, "announces too long a text");
  require(head.details_size <= head.text_size, "announces more details than text");
  const bool is_message = head.kind == FrameHeader::kCall || head.kind == FrameHeader::kReply;
  if (!is_message && (head.text_size > 0 || head.body_size > 0)) {
    throw InvalidArgumentError(cat("A frame of kind ", head.kind, " must not have a body."));
  }
  const bool names_region = head.kind == FrameHeader::kRegion || head.kind == FrameHeader::kForget;
  require(is_message || names_region == (head.region != 0), "names no memory, or needs none");
  require(head.region != 0 || head.offset == 0, "has an offset into no memory");
  require(head.kind != FrameHeader::kReply || head.number <= 16, "has no code");
}

}  // namespace

FrameReader::FrameReader() : buffer_(std::make_unique_for_overwrite<char[]>(kBufferSize)) {}

std::span<char> FrameReader::space() {
  if (reads_body()) {
    if (body_received_ == body_capacity_) grow_body();
    return {body_.get() + body_received_, body_capacity_ - body_received_};
  }
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (end_ == capacity_) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, buffered());
    end_ -= begin_;
    begin_ = 0;
  }
  return {buffer_.get() + end_, capacity_ - end_};
}

void FrameReader::received(std::size_t count) {
  if (reads_body()) {
    body_received_ += count;
  } else {
    end_ += count;
  }
}

void FrameReader::grow_body() {
  const std::size_t capacity =
      std::min(static_cast<std::size_t>(frame_.head.body_size), 2 * body_capacity_);
  const std::shared_ptr<char[]> grown = std::make_shared_for_overwrite<char[]>(capacity);
  std::memcpy(grown.get(), body_.get(), body_received_);
  body_ = grown;
  body_capacity_ = capacity;
}

bool FrameReader::read_head() {
  FrameHeader head;
  if (buffered() < sizeof(head)) return false;
  std::memcpy(&head, buffer_.get() + begin_, sizeof(head));
  check(head);
  const std::size_t size = sizeof(head) + head.text_size;
  if (buffered() < size) {
    if (size > capacity_) {  // a long message of an error
      auto larger = std::make_unique_for_overwrite<char[]>(size);
      std::memcpy(larger.get(), buffer_.get() + begin_, buffered());
      end_ = buffered();
      begin_ = 0;
      buffer_ = std::move(larger);
      capacity_ = size;
    }
    return false;
  }
  frame_.head = head;
  frame_.text.assign(buffer_.get() + begin_ + sizeof(head), head.text_size);
  begin_ += size;
  has_head_ = true;
  body_received_ = 0;
  if (head.region == 0 && head.body_size > 0) {
    body_capacity_ = std::min(static_cast<std::size_t>(head.body_size), kMaxPreallocated);
    body_ = std::make_shared_for_overwrite<char[]>(body_capacity_);
  }
  return true;
}

bool FrameReader::next(Frame& frame) {
  if (!has_head_ && !read_head()) return false;
  if (body_) {
    while (!body_is_whole() && buffered() > 0) {
      if (body_received_ == body_capacity_) grow_body();
      const std::size_t count = std::min<std::size_t>(buffered(), body_capacity_ - body_received_);
      std::memcpy(body_.get() + body_received_, buffer_.get() + begin_, count);
      begin_ += count;
      body_received_ += count;
    }
    if (!body_is_whole()) return false;
    frame_.body.append({body_.get(), static_cast<std::size_t>(frame_.head.body_size)}, body_);
    body_.reset();
  }
  frame = std::exchange(frame_, {});
  has_head_ = false;
  return true;
}

}  // namespace tandem::distribute
