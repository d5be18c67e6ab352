#include "tandem/kernels/cpu/onednn/library.h"

#include <dlfcn.h>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/onednn/static_objects.h"

#if defined(DNNL_CPU_THREADING_RUNTIME) && DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_TBB
#error \
    "Tandem splits work itself: oneDNN must be built with OpenMP, as a thread pool or sequential."
#endif

namespace tandem::cpu::onednn {
namespace {

// The OpenMP library that oneDNN loaded into the process, if any.
struct OpenMp {
  int (*get_max_threads)() = nullptr;
  void (*set_num_threads)(int) = nullptr;
  OpenMp() {
    const auto get = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    const auto set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (get && set) {
      get_max_threads = reinterpret_cast<int (*)()>(get);
      set_num_threads = reinterpret_cast<void (*)(int)>(set);
    }
  }
};

const OpenMp& open_mp() {
  static const OpenMp functions;
  return functions;
}

// As this library is loaded, hence before any call of oneDNN: some, such as dnnl_sgemm, need no
// engine.
[[maybe_unused]] const bool g_kept = keep_static_objects();

}  // namespace

const dnnl::engine& engine() {
  static const auto* cpu = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *cpu;
}

dnnl::stream& thread_stream() {
  thread_local dnnl::stream stream(engine());
  return stream;
}

dnnl::memory::data_type data_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat: return dnnl::memory::data_type::f32;
    case DType::kBFloat16: return dnnl::memory::data_type::bf16;
    default: throw InternalError(cat("oneDNN is not called for dtype ", dtype, "."));
  }
}

bool has_native_bfloat16() {
  static const bool has = [] {
    switch (dnnl::get_effective_cpu_isa()) {
      case dnnl::cpu_isa::avx512_core_bf16:
#if DNNL_VERSION_MAJOR >= 3
      case dnnl::cpu_isa::avx512_core_fp16:
#endif
      case dnnl::cpu_isa::avx512_core_amx: return true;
      default: return false;
    }
  }();
  return has;
}

std::string library_name() {
  const dnnl_version_t* const v = dnnl_version();
  return cat("oneDNN ", v->major, '.', v->minor, '.', v->patch, " isa ",
             static_cast<int>(dnnl::get_effective_cpu_isa()));
}

dnnl::primitive_attr user_scratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

OneThread::OneThread() : before_(1) {
  const OpenMp& omp = open_mp();
  if (!omp.get_max_threads) return;
  before_ = omp.get_max_threads();
  if (before_ != 1) omp.set_num_threads(1);
}

OneThread::~OneThread() {
  if (before_ != 1) open_mp().set_num_threads(before_);
}

void throw_status(dnnl_status_t status, const char* doing) {
  if (status == dnnl_out_of_memory) {
    throw ResourceExhaustedError(cat("Out of host memory while ", doing, "."));
  }
  throw InternalError(
      cat("oneDNN failed with status ", static_cast<int>(status), " while ", doing, "."));
}

}  // namespace tandem::cpu::onednn
