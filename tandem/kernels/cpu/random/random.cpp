// Random numbers into an output, from a place in a stream.

#include "tandem/kernels/cpu/random/random.h"

#include <algorithm>
#include <cstdio>
#include <random>

#include "tandem/core/error.h"
#include "tandem/device/plugin_backend.h"
#include "tandem/graph/rng_position.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/random/distributions.h"
#include "tandem/kernels/cpu/random/fill_random.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// The place in the stream at which the next execution of a node begins.
class StreamState final : public RefCounted {
 public:
  Philox next;
  Ref<RefCounted> beside;  // of `beside_stream`
};

std::uint64_t chance() {
  std::random_device device;
  return Philox::join(device(), device());
}

bool of_stage(std::uint64_t seed) {
  return seed == static_cast<std::uint64_t>(RngPosition::kStageSeed);
}
bool has_no_seeds(std::uint64_t seed, std::uint64_t seed2) {
  return (seed == 0 && seed2 == 0) || of_stage(seed);
}

// Each element's numbers lie at a place of their own, with room for 2^64 blocks, in a stream that
// follows from all else.
Philox blocks_at(RngPosition& position, std::string_view node, std::uint64_t seed,
                 std::uint64_t seed2, std::uint64_t blocks) {
  const RngPosition::Stream& stream = position.stream();
  Philox::Block hash{};
  const auto mix = [&hash](std::uint64_t x) {
    hash = Philox(hash, {Philox::low(x), Philox::high(x)})();
  };
  if (has_no_seeds(seed, seed2)) {
    mix(stream.seed);
    mix(stream.seed2);
    mix(of_stage(seed) ? seed2 : RngPosition::hash(node));
  } else {
    mix(seed);
    mix(seed2);
    mix(stream.origin);
  }
  mix(stream.pass);
  const std::uint64_t element = position.element() ^ Philox::join(hash[2], hash[3]);
  Philox numbers({0, 0, Philox::low(element), Philox::high(element)}, {hash[0], hash[1]});
  numbers.skip(position.take(node, seed, seed2, blocks));
  return numbers;
}

template <class F>
void float_switch(const KernelContext& c, F f) {
  with_floating(c.output_dtype(0), f);
}

template <class F>
void int_switch(const KernelContext& c, F f) {
  with_type<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>(c.output_dtype(0), f);
}

template <class Distribution>
void fill(KernelContext& c, const Shape& shape, const Philox& stream,
          const Distribution& distribution) {
  Array& out = c.allocate_output(0, shape);
  fill_random(c.intra_op(), stream, distribution, out.data<typename Distribution::Value>(),
              out.num_elements());
}

// The stream that a node keeps; the caller holds the state's lock.
StreamState& stream_of(const KernelContext& c, NodeState& state) {
  if (!state.object) {
    const auto seed = static_cast<std::uint64_t>(c.attr<std::int64_t>("seed"));
    const auto seed2 = static_cast<std::uint64_t>(c.attr<std::int64_t>("seed2"));
    auto fresh = make_ref<StreamState>();
    fresh->next = Philox(seed, seed2);
    if (has_no_seeds(seed, seed2)) fresh->next = Philox(chance(), chance());
    state.object = Ref<RefCounted>(std::move(fresh));
  }
  return static_cast<StreamState&>(*state.object);
}

// For kernels of plugins, which run the same streams.
const bool kOffered = [] {
  plugin_host_api().kernel_random = [](TandemKernelContext* context, std::uint64_t blocks,
                                       std::uint32_t* counter, std::uint32_t* key,
                                       TandemStatus* status) {
    try {
      const Philox begin = reserve_blocks(*reinterpret_cast<KernelContext*>(context), blocks);
      std::copy(begin.counter().begin(), begin.counter().end(), counter);
      std::copy(begin.key().begin(), begin.key().end(), key);
    } catch (const std::exception& error) {
      status->code = TANDEM_INTERNAL;
      std::snprintf(status->message, sizeof(status->message), "%s", error.what());
    }
  };
  return true;
}();

}  // namespace

Philox reserve_blocks(KernelContext& c, std::uint64_t blocks) {
  const auto seed = [&c](std::string_view name) {
    return static_cast<std::uint64_t>(c.attr<std::int64_t>(name));
  };
  if (RngPosition* position = RngPosition::current()) {
    return blocks_at(*position, c.node_name(), seed("seed"), seed("seed2"), blocks);
  }
  NodeState& state = c.state();
  std::lock_guard lock(state.mutex);
  Philox& next = stream_of(c, state).next;
  const Philox begin = next;
  next.skip(blocks);
  return begin;
}

Ref<RefCounted> beside_stream(KernelContext& c, Ref<RefCounted> (*make)(const KernelContext&)) {
  NodeState& state = c.state();
  std::lock_guard lock(state.mutex);
  Ref<RefCounted>& beside = stream_of(c, state).beside;
  if (!beside) beside = make(c);
  return beside;
}

Philox seed_input(const KernelContext& c, int input) {
  const Array& seed = c.input(input);
  if (!(seed.shape() == Shape{2})) {
    throw InvalidArgumentError(cat("seed must have shape [2], not ", seed.shape()));
  }
  const IntInput values(seed, "seed");
  return scrambled_philox(static_cast<std::uint64_t>(values[0]),
                          static_cast<std::uint64_t>(values[1]));
}

Philox key_counter_input(const KernelContext& c, int first) {
  const Array& key = c.input(first);
  const Array& counter = c.input(first + 1);
  const std::int64_t algorithm = scalar_int_input(c, first + 2, "algorithm");
  if (algorithm != 1 && algorithm != 3) {  // Philox, or whatever suits the device
    throw InvalidArgumentError(
        cat("Unsupported algorithm id: ", algorithm, ". Use 1 (Philox) or 3 (the default)."));
  }
  if (!(key.shape() == Shape{1})) {
    throw InvalidArgumentError(cat("key must have shape [1], not ", key.shape(), "."));
  }
  if (counter.rank() != 1 || counter.num_elements() < 2) {
    throw InvalidArgumentError(
        cat("counter must be a vector with length at least 2; got shape: ", counter.shape(), "."));
  }
  const std::uint64_t k = *key.data<std::uint64_t>();
  const auto* n = counter.data<std::uint64_t>();
  return Philox({Philox::low(n[0]), Philox::high(n[0]), Philox::low(n[1]), Philox::high(n[1])},
                {Philox::low(k), Philox::high(k)});
}

void fill_uniform(KernelContext& c, const Shape& shape, const Philox& stream) {
  float_switch(c, [&]<class T>() { fill(c, shape, stream, Uniform<T>()); });
}
void fill_normal(KernelContext& c, const Shape& shape, const Philox& stream) {
  float_switch(c, [&]<class T>() { fill(c, shape, stream, Normal<T>()); });
}
void fill_truncated_normal(KernelContext& c, const Shape& shape, const Philox& stream) {
  float_switch(c, [&]<class T>() { fill(c, shape, stream, TruncatedNormal<T>()); });
}
void fill_full_int(KernelContext& c, const Shape& shape, const Philox& stream) {
  int_switch(c, [&]<class T>() { fill(c, shape, stream, FullInt<T>()); });
}

void fill_uniform_int(KernelContext& c, const Shape& shape, int minval, int maxval,
                      const Philox& stream) {
  for (int i : {minval, maxval}) {
    if (c.input(i).rank() != 0) {
      throw InvalidArgumentError(
          cat(i == minval ? "minval" : "maxval", " must be 0-D, got shape ", c.input(i).shape()));
    }
  }
  int_switch(c, [&]<class T>() {
    const T low = *c.input(minval).data<T>();
    const T high = *c.input(maxval).data<T>();
    if (low >= high && shape.num_elements() != 0) {
      throw InvalidArgumentError(cat("Need minval < maxval, got ", low, " >= ", high));
    }
    fill(c, shape, stream, UniformInt<T>(low, high));
  });
}

}  // namespace tandem::cpu
