/* Kernels for four ops on floats. Each reads its inputs, allocates its output, and computes; a
 * status that is not written to means success. Tandem adds op, node and shapes to what fails. */
#include "toy.h"

#include <string.h>

#define FLOAT 1 /* TensorFlow's number of the type */

static int64_t count_of(const TandemTensor* tensor) {
  return (int64_t)(tensor->bytes / sizeof(float));
}

static int same_shape(const TandemTensor* a, const TandemTensor* b) {
  int32_t i;
  if (a->rank != b->rank) return 0;
  for (i = 0; i < a->rank; ++i) {
    if (a->dims[i] != b->dims[i]) return 0;
  }
  return 1;
}

static int inputs(TandemKernelContext* context, int32_t count, TandemTensor* tensors,
                  TandemStatus* status) {
  int32_t i;
  for (i = 0; i < count && status->code == TANDEM_OK; ++i) {
    tensors[i].size = sizeof(tensors[i]);
    toy_host->kernel_input(context, i, &tensors[i], status);
  }
  return status->code == TANDEM_OK;
}

static float* output(TandemKernelContext* context, int32_t rank, const int64_t* dims,
                     TandemStatus* status) {
  TandemTensor tensor;
  tensor.size = sizeof(tensor);
  toy_host->kernel_allocate_output(context, 0, rank, dims, &tensor, status);
  return status->code == TANDEM_OK ? tensor.data : NULL;
}

static void add(TandemKernelContext* context, TandemStatus* status) {
  TandemTensor in[2];
  float* out;
  int64_t i;
  if (!inputs(context, 2, in, status)) return;
  if (!same_shape(&in[0], &in[1])) {
    toy_fail(status, TANDEM_UNIMPLEMENTED, "the toy adds equal shapes alone");
    return;
  }
  out = output(context, in[0].rank, in[0].dims, status);
  if (!out) return;
  for (i = 0; i < count_of(&in[0]); ++i) {
    out[i] = ((const float*)in[0].data)[i] + ((const float*)in[1].data)[i];
  }
}

static void relu(TandemKernelContext* context, TandemStatus* status) {
  TandemTensor in;
  float* out;
  int64_t i;
  if (!inputs(context, 1, &in, status)) return;
  out = output(context, in.rank, in.dims, status);
  if (!out) return;
  for (i = 0; i < count_of(&in); ++i) {
    const float x = ((const float*)in.data)[i];
    out[i] = x > 0 ? x : 0;
  }
}

static void mat_mul(TandemKernelContext* context, TandemStatus* status) {
  TandemTensor in[2];
  int32_t turn_a = 0;
  int32_t turn_b = 0;
  int64_t dims[2];
  int64_t inner;
  int64_t i;
  int64_t j;
  int64_t k;
  float* out;
  if (!inputs(context, 2, in, status)) return;
  toy_host->kernel_attr_bool(context, "transpose_a", &turn_a, status);
  toy_host->kernel_attr_bool(context, "transpose_b", &turn_b, status);
  if (status->code != TANDEM_OK) return;
  if (in[0].rank != 2 || in[1].rank != 2 ||
      in[0].dims[turn_a ? 0 : 1] != in[1].dims[turn_b ? 1 : 0]) {
    toy_fail(status, TANDEM_INVALID_ARGUMENT, "the matrices do not fit each other");
    return;
  }
  dims[0] = in[0].dims[turn_a ? 1 : 0];
  dims[1] = in[1].dims[turn_b ? 0 : 1];
  inner = in[0].dims[turn_a ? 0 : 1];
  out = output(context, 2, dims, status);
  if (!out) return;
  for (i = 0; i < dims[0]; ++i) {
    for (j = 0; j < dims[1]; ++j) {
      float sum = 0;
      for (k = 0; k < inner; ++k) {
        sum += ((const float*)in[0].data)[turn_a ? k * dims[0] + i : i * inner + k] *
               ((const float*)in[1].data)[turn_b ? j * inner + k : k * dims[1] + j];
      }
      out[i * dims[1] + j] = sum;
    }
  }
}

/* Of the attribute's four numbers, for images of [batch, height, width, channels], those of height
 * and width. */
static int read_window(TandemKernelContext* context, const char* name, int64_t window[2],
                       TandemStatus* status) {
  const int64_t* values = NULL;
  size_t count = 0;
  toy_host->kernel_attr_int_list(context, name, &values, &count, status);
  if (status->code != TANDEM_OK) return 0;
  if (count != 4 || values[0] != 1 || values[3] != 1) {
    toy_fail(status, TANDEM_UNIMPLEMENTED, "the toy pools over height and width alone");
    return 0;
  }
  window[0] = values[1];
  window[1] = values[2];
  return 1;
}

static int attr_is(TandemKernelContext* context, const char* name, const char* wanted,
                   TandemStatus* status) {
  const char* value = NULL;
  size_t length = 0;
  toy_host->kernel_attr_string(context, name, &value, &length, status);
  if (status->code != TANDEM_OK) return 0;
  if (length == strlen(wanted) && memcmp(value, wanted, length) == 0) return 1;
  toy_fail(status, TANDEM_UNIMPLEMENTED, "the toy pools NHWC images without padding alone");
  return 0;
}

static void avg_pool(TandemKernelContext* context, TandemStatus* status) {
  TandemTensor in;
  int64_t size[2];
  int64_t stride[2];
  int64_t dims[4];
  int64_t n;
  int64_t y;
  int64_t x;
  int64_t c;
  int64_t v;
  int64_t u;
  float* out;
  if (!inputs(context, 1, &in, status) || !read_window(context, "ksize", size, status) ||
      !read_window(context, "strides", stride, status) ||
      !attr_is(context, "padding", "VALID", status) ||
      !attr_is(context, "data_format", "NHWC", status))
    return;
  if (in.rank != 4 || in.dims[1] < size[0] || in.dims[2] < size[1]) {
    toy_fail(status, TANDEM_INVALID_ARGUMENT, "the window does not fit into the images");
    return;
  }
  dims[0] = in.dims[0];
  dims[1] = (in.dims[1] - size[0]) / stride[0] + 1;
  dims[2] = (in.dims[2] - size[1]) / stride[1] + 1;
  dims[3] = in.dims[3];
  out = output(context, 4, dims, status);
  if (!out) return;
  for (n = 0; n < dims[0]; ++n) {
    for (y = 0; y < dims[1]; ++y) {
      for (x = 0; x < dims[2]; ++x) {
        for (c = 0; c < dims[3]; ++c) {
          float sum = 0;
          for (v = 0; v < size[0]; ++v) {
            for (u = 0; u < size[1]; ++u) {
              const int64_t row = n * in.dims[1] + y * stride[0] + v;
              sum += ((const float*)in.data)[(row * in.dims[2] + x * stride[1] + u) * dims[3] + c];
            }
          }
          *out++ = sum / (float)(size[0] * size[1]);
        }
      }
    }
  }
}

static const int32_t floats[] = {FLOAT};

#define TOY_KERNEL(variable, op_name, function)      \
  static const TandemKernel variable = {             \
      .size = sizeof(TandemKernel),                  \
      .op = op_name,                                 \
      .name = "toy",                                 \
      .type_attr = "T",                              \
      .types = floats,                               \
      .num_types = sizeof(floats) / sizeof(floats[0]), \
      .run = function,                               \
  }

TOY_KERNEL(add_kernel, "AddV2", add);
TOY_KERNEL(avg_pool_kernel, "AvgPool", avg_pool);
TOY_KERNEL(mat_mul_kernel, "MatMul", mat_mul);
TOY_KERNEL(relu_kernel, "Relu", relu);

const TandemKernel* const toy_kernels[] = {&add_kernel, &avg_pool_kernel, &mat_mul_kernel,
                                          &relu_kernel};
const size_t toy_num_kernels = sizeof(toy_kernels) / sizeof(toy_kernels[0]);
