// _FusedResize: images resized row by row, each row finished while it is in the nearest cache.

#include <cstdint>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/fused/fused_rows.h"
#include "tandem/kernels/cpu/image/resize_methods.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {

void resize_images(KernelContext& c, const Resize& r, int rank, int args, const Array& images) {
  const Placement place(c);
  const FusedRows rows(c, r, rank, args);
  if (rows.is_empty()) return;
  with_method(c, [&]<class Method>() {
    const Method method(place, r);
    with_real(images.dtype(), [&]<class T>() {
      const T* const in = images.data<T>();
      const std::int64_t in_row = r.in_width * r.channels;
      const auto line = [&](std::int64_t row) { return in + row * in_row; };
      c.intra_op().parallel_for(r.batch * r.out_height, method.cost(r) + rows.cost(),
                                [&](std::int64_t begin, std::int64_t end) {
                                  auto maker = method.template maker<T>(c, r);
                                  FusedRows::Writer writer(c, rows);
                                  for (std::int64_t i = begin; i < end; ++i) {
                                    maker.make(i / r.out_height * r.in_height, i % r.out_height,
                                               line, writer.place(i));
                                    writer.finish(i);
                                  }
                                });
    });
  });
}

namespace {

void fused_resize(KernelContext& c) {
  const Shape& images = c.input(0).shape();
  const int rank = images.rank();
  if (rank != 3 && rank != 4) {
    throw InvalidArgumentError(
        cat("images must be 4-dimensional, or 3-dimensional if one, but have shape ", images));
  }
  Resize r{rank == 4 ? images[0] : 1, images[rank - 1], images[rank - 3], images[rank - 2], 0, 0};
  set_new_size(r, c.input(1));
  resize_images(c, r, rank, 2, c.input(0));
}

constexpr DTypeSet kImageTypes =
    kFloatTypes | DTypeSet{DType::kInt8,   DType::kUint8, DType::kInt16,
                           DType::kUint16, DType::kInt32, DType::kInt64};

const KernelRegistration kResize{{.op = "_FusedResize",
                                  .name = "rows",
                                  .types = {{"T", kImageTypes}, {"Tout", kFloatTypes}},
                                  .run = fused_resize}};

}  // namespace
}  // namespace tandem::cpu
