#include "bench/ours/life/saved_model_load.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <tandem/tandem.h>

#include "bench/common/memory.h"
#include "bench/common/serve.h"

namespace td = tandem;

namespace bench {

int saved_model_load() {
  const char* folder = std::getenv("TANDEM_BENCH_MODELS");
  if (folder == nullptr) return 2;
  td::config::threading::set_intra_op_parallelism_threads(threads());
  td::config::threading::set_inter_op_parallelism_threads(threads());
  const td::saved_model::Module model = td::saved_model::load(std::string(folder) + "/resnet50");
  const td::saved_model::Signature serve = model.signature("serving_default");
  const td::Tensor x(td::io::read_npy(std::string(folder) + "/x.npy"));
  const td::Tensor y = serve({{serve.inputs()[0].name, x}}).at("output_0");
  const float check = td::math::reduce_sum(y * y).item<float>();
  std::printf("{\"peak_mb\": %.3f, \"check\": %.9g}\n", peak_memory_mb(),
              static_cast<double>(check));
  return 0;
}

}  // namespace bench
