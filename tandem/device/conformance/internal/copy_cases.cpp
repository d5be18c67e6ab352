#include <cstring>
#include <thread>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/device/conformance/internal/cases.h"
#include "tandem/device/kernel_class.h"

namespace tandem::conformance {
namespace {

constexpr std::size_t kBytes = 10007;

Ref<Buffer> host_buffer(const std::vector<std::uint8_t>& bytes) {
  Ref<Buffer> buffer = allocate_host_buffer(bytes.size());
  std::memcpy(buffer->data(), bytes.data(), bytes.size());
  return buffer;
}

std::vector<std::uint8_t> host_bytes(const Ref<Buffer>& buffer) {
  const auto* data = static_cast<const std::uint8_t*>(buffer->data());
  return {data, data + buffer->size()};
}

void round_trip(Device& device, std::size_t bytes, std::uint32_t seed) {
  const Ref<Buffer> buffer = device.allocator().allocate(bytes);
  const auto sent = pattern(bytes, seed);
  write(device, buffer, sent);
  expect_bytes(read(device, buffer, bytes), sent, cat("a round trip of ", bytes, " bytes"));
}

void to_and_from(const Lab& lab) {
  const auto device = lab.make();
  for (std::size_t bytes : {1, 3, 64, 4095, 4096, 10007}) round_trip(*device, bytes, 1);
}

void offsets(const Lab& lab) {
  const auto device = lab.make();
  const Ref<Buffer> buffer = device->allocator().allocate(kBytes);
  auto want = pattern(kBytes, 1);
  write(*device, buffer, want);
  const auto part = pattern(501, 2);
  write(*device, buffer, part, 77);
  std::copy(part.begin(), part.end(), want.begin() + 77);
  expect_bytes(read(*device, buffer, kBytes), want, "a buffer written in part");
  expect_bytes(read(*device, buffer, 13, 573), {want.begin() + 573, want.begin() + 586},
               "a buffer read in part");
  const Ref<Buffer> host = host_buffer(pattern(kBytes, 3));
  Stream& stream = device->stream(StreamKind::kCopyOut);
  stream.enqueue(Copy{.from = buffer, .from_offset = 5, .to = host, .to_offset = 9, .bytes = 100});
  stream.synchronize();
  auto host_want = pattern(kBytes, 3);
  std::copy(want.begin() + 5, want.begin() + 105, host_want.begin() + 9);
  expect_bytes(host_bytes(host), host_want, "offsets at both ends");
}

void zero_bytes(const Lab& lab) {
  const auto device = lab.make();
  const Ref<Buffer> buffer = device->allocator().allocate(16);
  const Ref<Buffer> none = device->allocator().allocate(0);
  write(*device, buffer, pattern(16, 1));
  const auto outcomes = std::make_shared<Outcomes>();
  Stream& stream = device->stream(StreamKind::kCopyIn);
  for (const auto& [from, to] :
       {std::pair{allocate_host_buffer(0), none}, std::pair{allocate_host_buffer(0), buffer}}) {
    stream.enqueue(Copy{.from = from,
                        .from_offset = 0,
                        .to = to,
                        .to_offset = 0,
                        .bytes = 0,
                        .done = into(outcomes)});
  }
  for (const auto& error : outcomes->wait(2)) {
    expect_success(error, "a copy of no bytes");
  }
  expect_bytes(read(*device, buffer, 16), pattern(16, 1), "a buffer after a copy of no bytes");
}

void large(const Lab& lab) {
  const auto device = lab.make();
  round_trip(*device, lab.options().large_copy, 7);
}

void staging(const Lab& lab) {
  const auto device = lab.make();
  const Ref<Buffer> there = device->allocator().allocate(kBytes);
  const Ref<Buffer> out = device->staging_allocator().allocate(kBytes);
  const Ref<Buffer> back = device->staging_allocator().allocate(kBytes);
  const auto bytes = pattern(kBytes, 4);
  std::memcpy(out->data(), bytes.data(), kBytes);
  Stream& in = device->stream(StreamKind::kCopyIn);
  Stream& from = device->stream(StreamKind::kCopyOut);
  in.enqueue(Copy{.from = out, .from_offset = 0, .to = there, .to_offset = 0, .bytes = kBytes});
  from.wait_for(in.record());
  from.enqueue(Copy{.from = there, .from_offset = 0, .to = back, .to_offset = 0, .bytes = kBytes});
  from.synchronize();
  expect_bytes(host_bytes(back), bytes, "a copy by staging memory");
}

void within_device(const Lab& lab) {
  const auto device = lab.make();
  const Ref<Buffer> from = device->allocator().allocate(kBytes);
  const Ref<Buffer> to = device->allocator().allocate(kBytes);
  write(*device, from, pattern(kBytes, 1));
  write(*device, to, pattern(kBytes, 2));
  Stream& stream = device->stream(StreamKind::kCompute);
  stream.enqueue(Copy{.from = from, .from_offset = 100, .to = to, .to_offset = 200, .bytes = 1000});
  stream.record()->wait();
  auto want = pattern(kBytes, 2);
  const auto source = pattern(kBytes, 1);
  std::copy(source.begin() + 100, source.begin() + 1100, want.begin() + 200);
  expect_bytes(read(*device, to, kBytes), want, "a copy within a device");
}

void between(Device& first, Device& second) {
  const Ref<Buffer> a = first.allocator().allocate(kBytes);
  const Ref<Buffer> b = second.allocator().allocate(kBytes);
  write(first, a, pattern(kBytes, 1));
  write(second, b, pattern(kBytes, 2));
  // By the receiver's stream, and back by the sender's.
  Stream& in = second.stream(StreamKind::kCopyIn);
  in.enqueue(Copy{.from = a, .from_offset = 7, .to = b, .to_offset = 11, .bytes = 4000});
  in.synchronize();
  auto want = pattern(kBytes, 2);
  const auto source = pattern(kBytes, 1);
  std::copy(source.begin() + 7, source.begin() + 4007, want.begin() + 11);
  expect_bytes(read(second, b, kBytes), want, "a copy that the receiver's stream made");
  Stream& out = second.stream(StreamKind::kCopyOut);
  out.enqueue(Copy{.from = b, .from_offset = 0, .to = a, .to_offset = 0, .bytes = kBytes});
  out.synchronize();
  expect_bytes(read(first, a, kBytes), want, "a copy that the sender's stream made");
}

void between_logical(const Lab& lab) {
  const auto first = lab.make(0);
  const auto second = lab.make(1);
  expect(first->can_copy_to(*second) && second->can_copy_to(*first),
         "two logical devices of one physical cannot copy to each other");
  between(*first, *second);
}

void between_physical(const Lab& lab) {
  const auto all = lab.all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == lab.options().physical || all[i].device_type != lab.physical().device_type) continue;
    const auto first = lab.make(0);
    const auto second = lab.make(all[i], {}, 1);
    return between(*first, *second);
  }
  fail("there is one physical device alone");
}

void many_at_once(const Lab& lab) {
  const auto device = lab.make();
  constexpr std::size_t kPieces = 200;
  constexpr std::size_t kPiece = 333;
  const auto bytes = pattern(kPieces * kPiece, 6);
  const Ref<Buffer> host = host_buffer(bytes);
  const Ref<Buffer> there = device->allocator().allocate(bytes.size());
  const Ref<Buffer> back = allocate_host_buffer(bytes.size());
  const auto outcomes = std::make_shared<Outcomes>();
  Stream& in = device->stream(StreamKind::kCopyIn);
  Stream& out = device->stream(StreamKind::kCopyOut);
  for (std::size_t i = 0; i < kPieces; ++i) {
    const std::size_t at = i * kPiece;
    in.enqueue(Copy{host, at, there, at, kPiece, into(outcomes)});
    out.wait_for(in.record());
    out.enqueue(Copy{there, at, back, at, kPiece, into(outcomes)});
  }
  for (const auto& error : outcomes->wait(2 * kPieces)) {
    expect_success(error, "a copy among many");
  }
  out.synchronize();
  expect(outcomes->count() == 2 * kPieces, "`done` of a copy was called more than once");
  expect_bytes(host_bytes(back), bytes, "many copies at once");
}

void keep_their_buffers(const Lab& lab) {
  const auto device = lab.make();
  const Ref<Buffer> back = allocate_host_buffer(kBytes);
  const auto outcomes = std::make_shared<Outcomes>();
  Stream& in = device->stream(StreamKind::kCopyIn);
  Stream& out = device->stream(StreamKind::kCopyOut);
  for (std::uint32_t i = 0; i < 20; ++i) {
    // Nothing but the copies holds either buffer.
    const Ref<Buffer> there = device->allocator().allocate(kBytes);
    in.enqueue(Copy{host_buffer(pattern(kBytes, i)), 0, there, 0, kBytes, {}});
    out.wait_for(in.record());
    out.enqueue(Copy{there, 0, back, 0, kBytes, into(outcomes)});
    outcomes->wait(i + 1);
    expect_bytes(host_bytes(back), pattern(kBytes, i), "a buffer that copies alone hold");
  }
}

void from_many_threads(const Lab& lab) {
  const auto device = lab.make();
  const auto problems = std::make_shared<Outcomes>();
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&device, problems, t] {
      try {
        for (std::uint32_t i = 0; i < 25; ++i) round_trip(*device, 1000 + i, t * 100 + i);
      } catch (...) {
        problems->add(std::current_exception());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  if (problems->count() != 0) std::rethrow_exception(problems->wait(1).front());
}

// What kernels of class "cpu" do: follow the address that kernel_view gives.
void seen_by_kernels(const Lab& lab) {
  const auto device = lab.make();
  expect(runs_host_kernels(device->kernel_class()), "the kernel class is ", device->kernel_class(),
         ": the suite has no kernels for it");
  const Ref<Buffer> buffer = device->allocator().allocate(kBytes);
  const auto sent = pattern(kBytes, 1);
  write(*device, buffer, sent);
  const Array token(DType::kUint8, Shape{static_cast<std::int64_t>(kBytes)}, buffer,
                    buffer->data());
  const auto outcomes = std::make_shared<Outcomes>();
  Stream& stream = device->stream(StreamKind::kCompute);
  stream.enqueue(Work{.run =
                          [token] {
                            auto* bytes = kernel_view(token).data<std::uint8_t>();
                            for (std::size_t i = 0; i < kBytes; ++i) bytes[i] ^= 0x5a;
                          },
                      .bytes = 2.0 * kBytes,
                      .done = into(outcomes)});
  const auto error = outcomes->wait(1).front();
  expect_success(error, "a kernel");
  auto want = sent;
  for (std::uint8_t& byte : want) byte ^= 0x5a;
  expect_bytes(read(*device, buffer, kBytes), want, "what a kernel wrote");
}

}  // namespace

void add_copy_cases(std::vector<Case>& cases) {
  cases.insert(cases.end(), {{"copies/to_and_from", to_and_from},
                             {"copies/offsets", offsets},
                             {"copies/zero_bytes", zero_bytes},
                             {"copies/large", large},
                             {"copies/staging", staging},
                             {"copies/within_device", within_device},
                             {"copies/between_logical", between_logical},
                             {"copies/between_physical", between_physical},
                             {"copies/many_at_once", many_at_once},
                             {"copies/keep_their_buffers", keep_their_buffers},
                             {"copies/from_many_threads", from_many_threads},
                             {"copies/seen_by_kernels", seen_by_kernels}});
}

}  // namespace tandem::conformance
