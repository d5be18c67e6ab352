#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/device/plugin.h"

// What a CUDA kernel's host side sees: its inputs, outputs and attributes through the plug-in
// interface, and the stream to launch into. It knows nothing of libtandem.

namespace tandem::cuda {

/// TensorFlow's numbers of element types (docs of tandem/device/plugin.h).
enum class Type : std::int32_t {
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kInt64 = 9,
  kBool = 10,
  kBFloat16 = 14,
  kUint16 = 17,
  kHalf = 19,
  kUint32 = 22,
  kUint64 = 23
};

using Sizes = std::vector<std::int64_t>;

/// A tensor in device memory, or in host memory where the op's declaration says so.
struct TensorView {
  Type type = Type::kFloat;
  Sizes sizes;
  void* data = nullptr;
  std::int64_t count = 0;  ///< elements
  bool on_host = false;    ///< `data` is host memory

  int rank() const { return static_cast<int>(sizes.size()); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  /// Elements of an int16, int32 or int64 tensor in host memory.
  Sizes host_integers() const;
  /// host_integers of a vector. Throws Failure, naming `what`, for any other rank.
  Sizes host_vector(const char* what) const;
  /// The one element of a scalar. Throws Failure, naming `what`, for any other rank.
  std::int64_t host_scalar(const char* what) const;
};

/// A place in a stream of Philox 4x32-10.
struct RandomStart {
  std::uint32_t counter[4] = {};
  std::uint32_t key[2] = {};
};

/// One call of a kernel. Functions throw Failure, which becomes the op's error.
class KernelCall {
 public:
  explicit KernelCall(TandemKernelContext* context) : context_(context) {}

  std::string_view op() const;
  int num_inputs() const;
  int num_outputs() const;
  TensorView input(int i) const;
  TensorView allocate_output(int i, const Sizes& sizes) const;

  std::int64_t attr_int(const char* name) const;
  float attr_float(const char* name) const;
  std::vector<float> attr_floats(const char* name) const;
  std::vector<std::string> attr_strings(const char* name) const;
  bool attr_bool(const char* name) const;
  std::string attr_string(const char* name) const;
  Type attr_type(const char* name) const;
  Sizes attr_ints(const char* name) const;

  /// The value of the variable that input i names. Throws Failure while it has none.
  TensorView variable(int i) const;
  /// Its value in memory that nothing else sees, to be changed in place.
  TensorView writable_variable(int i) const;
  /// Output `output` is input `input` as it is.
  void forward(int input, int output) const;
  /// forward(0, 0) where the op has an output: ops on references return theirs.
  void return_reference() const;
  /// Where this execution of an op with a random state begins in its stream, which moves on.
  RandomStart reserve_random(std::uint64_t blocks) const;
  /// Results must have the same bits in every run.
  bool deterministic() const;
  /// Products of floats may be computed in TensorFloat-32.
  bool tensor_float_32() const;

  /// Copies device memory within the stream.
  void copy(void* to, const void* from, std::size_t bytes) const;
  /// Zeros device memory within the stream.
  void zero(void* to, std::size_t bytes) const;
  /// Copies host memory to the device, and waits for it.
  void upload(void* to, const void* from, std::size_t bytes) const;
  /// Copies device memory to the host, and waits for it: for shapes that follow from elements.
  void read_back(void* to, const void* from, std::size_t bytes) const;
  /// Integers (int32 or int64) of a tensor wherever it lies.
  Sizes read_integers(const TensorView& tensor) const;

  /// Memory of the device for what this kernel launches. Several requests of one kernel are better
  /// made as one.
  void* scratch(std::size_t bytes) const;

 private:
  TandemKernelContext* context_;
};

/// Throws Failure with TANDEM_INVALID_ARGUMENT.
[[noreturn]] void refuse(const std::string& text);
/// Throws Failure with TANDEM_UNIMPLEMENTED: the op has more cases than the kernel.
[[noreturn]] void not_on_gpu(const std::string& text);

std::int64_t product(std::span<const std::int64_t> sizes);

/// What Tandem offers to the library; set once when the library is opened.
const TandemHostApi& host_api();
void set_host_api(const TandemHostApi* api);

}  // namespace tandem::cuda
