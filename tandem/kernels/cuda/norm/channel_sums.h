#pragma once

#include <algorithm>
#include <string>

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"
#include "tandem/kernels/cuda/support/warp.h"

// Two sums for each channel of a value, in an order that depends on the sizes alone.

namespace tandem::cuda {

/// A value seen as [outer, channels, inner]: inner is 1 if the channels come last (NHWC).
struct Channels {
  std::int64_t outer = 0, channels = 0, inner = 1;
  TANDEM_HOST_DEVICE std::int64_t elements() const { return outer * inner; }  // of one channel
  TANDEM_HOST_DEVICE std::int64_t at(std::int64_t channel, std::int64_t element) const {
    return (element / inner * channels + channel) * inner + element % inner;
  }
  TANDEM_HOST_DEVICE std::int64_t channel_of(std::int64_t i) const { return i / inner % channels; }
};

/// The channels of sizes in a data format such as NHWC or NCDHW.
inline Channels channels_of(const Sizes& sizes, const std::string& format) {
  const std::size_t axis = format.rfind("NC", 0) == 0 ? 1 : sizes.size() - 1;
  Channels c;
  c.outer = product(std::span(sizes).first(axis));
  c.channels = sizes[axis];
  c.inner = product(std::span(sizes).subspan(axis + 1));
  return c;
}

struct Two {
  float first = 0, second = 0;
};

/// Elements of a channel that one block sums up, and how many blocks that makes.
constexpr std::int64_t kPieceElements = 8192;
inline std::int64_t channel_pieces(const Channels& c) {
  return std::clamp<std::int64_t>((c.elements() + kPieceElements - 1) / kPieceElements, 1, 128);
}

constexpr unsigned kSumColumns = 32, kSumRows = 8;

// Channels side by side: a block sums up 32 of them over a piece of the rows. `terms(i, channel)`
// gives what element i adds.
template <class Terms>
TANDEM_KERNEL channel_sums_kernel(Terms terms, Channels c, Two* partial, std::int64_t pieces) {
  TANDEM_SHARED(float, firsts, kSumColumns* kSumRows);
  TANDEM_SHARED(float, seconds, kSumColumns* kSumRows);
  const std::int64_t n = c.elements(), per_piece = (n + pieces - 1) / pieces;
  const std::int64_t channel =
      static_cast<std::int64_t>(blockIdx.x) * kSumColumns + static_cast<std::int64_t>(threadIdx.x);
  for (std::int64_t piece = blockIdx.y; piece < pieces; piece += gridDim.y) {
    const std::int64_t end = (piece + 1) * per_piece < n ? (piece + 1) * per_piece : n;
    Two sum;
    if (channel < c.channels) {
      for (std::int64_t k = piece * per_piece + threadIdx.y; k < end; k += kSumRows) {
        const Two term = terms(c.at(channel, k), channel);
        sum.first += term.first;
        sum.second += term.second;
      }
    }
    const unsigned at = threadIdx.y * kSumColumns + threadIdx.x;
    firsts[at] = sum.first;
    seconds[at] = sum.second;
    __syncthreads();
    if (threadIdx.y == 0 && channel < c.channels) {
      for (unsigned row = 1; row < kSumRows; ++row) {
        sum.first += firsts[row * kSumColumns + threadIdx.x];
        sum.second += seconds[row * kSumColumns + threadIdx.x];
      }
      partial[piece * c.channels + channel] = sum;
    }
    __syncthreads();
  }
}

// Elements of a channel side by side: a block for each channel and piece.
template <class Terms>
TANDEM_KERNEL channel_run_sums_kernel(Terms terms, Channels c, Two* partial, std::int64_t pieces) {
  const std::int64_t n = c.elements(), per_piece = (n + pieces - 1) / pieces;
  for (std::int64_t block = blockIdx.x; block < c.channels * pieces; block += gridDim.x) {
    const std::int64_t channel = block % c.channels, piece = block / c.channels;
    const std::int64_t end = (piece + 1) * per_piece < n ? (piece + 1) * per_piece : n;
    Two sum;
    for (std::int64_t k = piece * per_piece + threadIdx.x; k < end; k += blockDim.x) {
      const Two term = terms(c.at(channel, k), channel);
      sum.first += term.first;
      sum.second += term.second;
    }
    const auto plus = [](float a, float b) { return a + b; };
    sum.first = block_reduce_all(sum.first, 0.0f, plus);
    sum.second = block_reduce_all(sum.second, 0.0f, plus);
    if (threadIdx.x == 0) partial[piece * c.channels + channel] = sum;
    __syncthreads();
  }
}

/// partial[piece * channels + channel] for channel_pieces(c) pieces.
template <class Terms>
void channel_sums(const Terms& terms, const Channels& c, Two* partial) {
  const std::int64_t pieces = channel_pieces(c);
  Shape shape;
  if (c.inner >= 32) {
    TANDEM_LAUNCH(channel_run_sums_kernel<Terms>, rows_shape(c.channels * pieces, default_block()),
                  0, terms, c, partial, pieces);
    return;
  }
  shape.grid.x = static_cast<unsigned>((c.channels + kSumColumns - 1) / kSumColumns);
  shape.grid.y = static_cast<unsigned>(pieces);
  shape.block.x = kSumColumns;
  shape.block.y = kSumRows;
  TANDEM_LAUNCH(channel_sums_kernel<Terms>, shape, 0, terms, c, partial, pieces);
}

/// The terms of a channel's moments: what is left of its elements when its first is taken off, and
/// the squares of that, so that large means cost no digits.
template <class T>
struct MomentTerms {
  const T* x;
  std::int64_t inner;
  TANDEM_DEVICE Two operator()(std::int64_t i, std::int64_t channel) const {
    const float d = load(x[i]) - load(x[channel * inner]);
    return {d, d * d};
  }
};

/// The sums of all pieces of a channel.
TANDEM_DEVICE Two total_of(const Two* partial, std::int64_t channel, std::int64_t channels,
                           std::int64_t pieces) {
  Two sum;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    sum.first += partial[piece * channels + channel].first;
    sum.second += partial[piece * channels + channel].second;
  }
  return sum;
}

}  // namespace tandem::cuda
