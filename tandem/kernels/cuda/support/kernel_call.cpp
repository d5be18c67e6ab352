#include "tandem/kernels/cuda/support/kernel_call.h"

#include "tandem/device/cuda/internal/driver.h"
#include "tandem/device/cuda/internal/stream.h"

namespace tandem::cuda {
namespace {

const TandemHostApi*& api() {
  static const TandemHostApi* offered = nullptr;
  return offered;
}

TandemStatus no_error() {
  TandemStatus status;
  status.size = sizeof(status);
  status.code = TANDEM_OK;
  status.message[0] = '\0';
  return status;
}

void check(const TandemStatus& status) {
  if (status.code != TANDEM_OK) throw Failure(status.code, status.message);
}

TensorView view_of(const TandemTensor& tensor) {
  TensorView view;
  view.type = static_cast<Type>(tensor.dtype);
  view.sizes.assign(tensor.dims, tensor.dims + tensor.rank);
  view.data = tensor.data;
  view.count = product(view.sizes);
  view.on_host = tensor.on_host != 0;
  return view;
}

// The attribute by the function of the host that reads its kind.
template <class Value, class Read>
Value attr(TandemKernelContext* context, const char* name, Read read) {
  Value value = {};
  TandemStatus status = no_error();
  read(context, name, &value, &status);
  check(status);
  return value;
}

}  // namespace

void set_host_api(const TandemHostApi* offered) { api() = offered; }
const TandemHostApi& host_api() { return *api(); }

std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes) n *= size;
  return n;
}

void refuse(const std::string& text) { throw Failure(TANDEM_INVALID_ARGUMENT, text); }
void not_on_gpu(const std::string& text) { throw Failure(TANDEM_UNIMPLEMENTED, text); }

Sizes TensorView::host_integers() const {
  if (type == Type::kInt32) return {as<std::int32_t>(), as<std::int32_t>() + count};
  if (type == Type::kInt64) return {as<std::int64_t>(), as<std::int64_t>() + count};
  if (type == Type::kInt16) return {as<std::int16_t>(), as<std::int16_t>() + count};
  refuse("integers are expected here");
}

Sizes TensorView::host_vector(const char* what) const {
  if (rank() != 1) refuse(std::string(what) + " must be a vector");
  return host_integers();
}

std::int64_t TensorView::host_scalar(const char* what) const {
  if (rank() != 0) refuse(std::string(what) + " must be a scalar");
  return host_integers()[0];
}

std::string_view KernelCall::op() const { return host_api().kernel_op(context_); }
int KernelCall::num_inputs() const { return host_api().kernel_num_inputs(context_); }
int KernelCall::num_outputs() const { return host_api().kernel_num_outputs(context_); }

TensorView KernelCall::input(int i) const {
  TandemTensor tensor = {};
  tensor.size = sizeof(tensor);
  TandemStatus status = no_error();
  host_api().kernel_input(context_, i, &tensor, &status);
  check(status);
  return view_of(tensor);
}

TensorView KernelCall::allocate_output(int i, const Sizes& sizes) const {
  TandemTensor tensor = {};
  tensor.size = sizeof(tensor);
  TandemStatus status = no_error();
  host_api().kernel_allocate_output(context_, i, static_cast<std::int32_t>(sizes.size()),
                                    sizes.data(), &tensor, &status);
  check(status);
  return view_of(tensor);
}

std::int64_t KernelCall::attr_int(const char* name) const {
  return attr<std::int64_t>(context_, name, host_api().kernel_attr_int);
}
float KernelCall::attr_float(const char* name) const {
  return attr<float>(context_, name, host_api().kernel_attr_float);
}
bool KernelCall::attr_bool(const char* name) const {
  return attr<std::int32_t>(context_, name, host_api().kernel_attr_bool) != 0;
}
Type KernelCall::attr_type(const char* name) const {
  return static_cast<Type>(attr<std::int32_t>(context_, name, host_api().kernel_attr_type));
}
std::string KernelCall::attr_string(const char* name) const {
  const char* text = nullptr;
  std::size_t length = 0;
  TandemStatus status = no_error();
  host_api().kernel_attr_string(context_, name, &text, &length, &status);
  check(status);
  return {text, length};
}
Sizes KernelCall::attr_ints(const char* name) const {
  const std::int64_t* values = nullptr;
  std::size_t count = 0;
  TandemStatus status = no_error();
  host_api().kernel_attr_int_list(context_, name, &values, &count, &status);
  check(status);
  return {values, values + count};
}

std::vector<float> KernelCall::attr_floats(const char* name) const {
  const float* values = nullptr;
  std::size_t count = 0;
  TandemStatus status = no_error();
  host_api().kernel_attr_float_list(context_, name, &values, &count, &status);
  check(status);
  return {values, values + count};
}
std::vector<std::string> KernelCall::attr_strings(const char* name) const {
  std::vector<std::string> texts;
  std::size_t count = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const char* text = nullptr;
    std::size_t length = 0;
    TandemStatus status = no_error();
    host_api().kernel_attr_string_list(context_, name, i, &text, &length, &count, &status);
    check(status);
    if (i < count) texts.emplace_back(text, length);
  }
  return texts;
}

TensorView KernelCall::variable(int i) const {
  TandemTensor tensor = {}, shared = {};
  tensor.size = shared.size = sizeof(tensor);
  TandemStatus status = no_error();
  host_api().kernel_variable(context_, i, 0, &tensor, &shared, &status);
  check(status);
  return view_of(tensor);
}

TensorView KernelCall::writable_variable(int i) const {
  TandemTensor tensor = {}, shared = {};
  tensor.size = shared.size = sizeof(tensor);
  TandemStatus status = no_error();
  host_api().kernel_variable(context_, i, 1, &tensor, &shared, &status);
  check(status);
  if (shared.data) copy(tensor.data, shared.data, static_cast<std::size_t>(tensor.bytes));
  return view_of(tensor);
}

void KernelCall::forward(int input, int output) const {
  TandemStatus status = no_error();
  host_api().kernel_forward(context_, input, output, &status);
  check(status);
}

void KernelCall::return_reference() const {
  if (num_outputs() > 0) forward(0, 0);
}

RandomStart KernelCall::reserve_random(std::uint64_t blocks) const {
  RandomStart start;
  TandemStatus status = no_error();
  host_api().kernel_random(context_, blocks, start.counter, start.key, &status);
  check(status);
  return start;
}

bool KernelCall::deterministic() const { return host_api().kernel_deterministic(context_) != 0; }
bool KernelCall::tensor_float_32() const {
  return host_api().kernel_tensor_float_32(context_) != 0;
}

void KernelCall::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0 || to == from) return;
  Command c;
  c.kind = Command::Kind::kCopy;
  c.to = reinterpret_cast<CUdeviceptr>(to);
  c.from = reinterpret_cast<CUdeviceptr>(from);
  c.bytes = bytes;
  StreamState::current().commands().add(c);
  StreamState::current().added();
}

void KernelCall::zero(void* to, std::size_t bytes) const {
  if (bytes == 0) return;
  Command c;
  c.kind = Command::Kind::kSet;
  c.to = reinterpret_cast<CUdeviceptr>(to);
  c.bytes = bytes;
  StreamState::current().commands().add(c);
  StreamState::current().added();
}

void KernelCall::upload(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  Command c;
  c.kind = Command::Kind::kToGpu;
  c.to = reinterpret_cast<CUdeviceptr>(to);
  c.host_from = from;
  c.bytes = bytes;
  StreamState::current().commands().add(c);
  StreamState::current().synchronize();
}

void KernelCall::read_back(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  Command c;
  c.kind = Command::Kind::kToHost;
  c.from = reinterpret_cast<CUdeviceptr>(from);
  c.host_to = to;
  c.bytes = bytes;
  StreamState::current().commands().add(c);
  StreamState::current().synchronize();
}

Sizes KernelCall::read_integers(const TensorView& tensor) const {
  if (tensor.on_host) return tensor.host_integers();
  if (tensor.type == Type::kInt64) {
    Sizes values(static_cast<std::size_t>(tensor.count));
    read_back(values.data(), tensor.data, values.size() * sizeof(std::int64_t));
    return values;
  }
  std::vector<std::int32_t> values(static_cast<std::size_t>(tensor.count));
  read_back(values.data(), tensor.data, values.size() * sizeof(std::int32_t));
  return {values.begin(), values.end()};
}

void* KernelCall::scratch(std::size_t bytes) const {
  TandemStatus status = no_error();
  void* const memory = host_api().kernel_allocate_temporary(context_, bytes, &status);
  check(status);
  return memory;
}

}  // namespace tandem::cuda
