#include "tandem/io/hdf5/wrapper.h"

#include <hdf5.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tandem/core/dtype.h"

namespace {

using tandem::DType;

struct Failure {
  std::string why;
};

// An object of the library and the function that closes it.
class Id {
 public:
  Id(hid_t id, herr_t (*close)(hid_t), const char* what) : id_(id), close_(close) {
    if (id_ < 0) throw Failure{std::string("HDF5 failed: ") + what};
  }
  ~Id() { close_(id_); }
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;
  hid_t get() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void check(herr_t status, const char* what) {
  if (status < 0) throw Failure{std::string("HDF5 failed: ") + what};
}

hid_t half_type() {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 15);
  return type;
}

// As h5py stores truth values.
hid_t bool_type() {
  const hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
  signed char value = 0;
  H5Tenum_insert(type, "FALSE", &value);
  value = 1;
  H5Tenum_insert(type, "TRUE", &value);
  return type;
}

hid_t new_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat: return H5Tcopy(H5T_IEEE_F32LE);
    case DType::kDouble: return H5Tcopy(H5T_IEEE_F64LE);
    case DType::kHalf: return half_type();
    case DType::kBFloat16: return H5Tcreate(H5T_OPAQUE, 2);  // as h5py does
    case DType::kInt8: return H5Tcopy(H5T_STD_I8LE);
    case DType::kInt16: return H5Tcopy(H5T_STD_I16LE);
    case DType::kInt32: return H5Tcopy(H5T_STD_I32LE);
    case DType::kInt64: return H5Tcopy(H5T_STD_I64LE);
    case DType::kUint8: return H5Tcopy(H5T_STD_U8LE);
    case DType::kUint16: return H5Tcopy(H5T_STD_U16LE);
    case DType::kUint32: return H5Tcopy(H5T_STD_U32LE);
    case DType::kUint64: return H5Tcopy(H5T_STD_U64LE);
    case DType::kBool: return bool_type();
    default: throw Failure{"there are no elements of dtype " + std::to_string(int(dtype))};
  }
}

DType dtype_of_type(hid_t type) {
  const std::size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      if (size == 2) return H5Tget_ebias(type) == 15 ? DType::kHalf : DType::kInvalid;
      return size == 4 ? DType::kFloat : size == 8 ? DType::kDouble : DType::kInvalid;
    case H5T_INTEGER: {
      const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
      switch (size) {
        case 1: return is_signed ? DType::kInt8 : DType::kUint8;
        case 2: return is_signed ? DType::kInt16 : DType::kUint16;
        case 4: return is_signed ? DType::kInt32 : DType::kUint32;
        case 8: return is_signed ? DType::kInt64 : DType::kUint64;
        default: return DType::kInvalid;
      }
    }
    case H5T_OPAQUE: return size == 2 ? DType::kBFloat16 : DType::kInvalid;
    case H5T_ENUM: return size == 1 ? DType::kBool : DType::kInvalid;
    default: return DType::kInvalid;
  }
}

class FileReader {
 public:
  FileReader(const void* bytes, std::size_t size, const TandemHdf5Visitor& visitor)
      : size_(size), visitor_(visitor), access_(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "access") {
    check(H5Pset_fapl_core(access_.get(), 1 << 20, 0), "memory");
    check(H5Pset_file_image(access_.get(), const_cast<void*>(bytes), size), "memory");
  }

  void read() {
    const Id file(H5Fopen("in memory", H5F_ACC_RDONLY, access_.get()), H5Fclose,
                  "this is no file of HDF5, or it is damaged");
    const herr_t status = H5Ovisit(file.get(), H5_INDEX_NAME, H5_ITER_INC, visit, this);
    if (!failure_.why.empty()) throw failure_;
    check(status, "its groups are damaged");
  }

 private:
  static herr_t visit(hid_t file, const char* name, const H5O_info_t* info, void* self) {
    auto& reader = *static_cast<FileReader*>(self);
    try {
      reader.object(file, name, *info);
      return 0;
    } catch (const Failure& failure) {
      reader.failure_ = failure;
    } catch (const std::exception& error) {
      reader.failure_ = {error.what()};
    }
    return -1;
  }

  void object(hid_t file, const char* name, const H5O_info_t& info) {
    path_ = std::strcmp(name, ".") == 0 ? "" : name;
    const Id object(H5Oopen(file, name, H5P_DEFAULT), H5Oclose, "an object is damaged");
    if (info.type == H5O_TYPE_GROUP) visitor_.group(visitor_.context, path_.c_str());
    if (info.type == H5O_TYPE_DATASET) dataset(object.get());
    hsize_t at = 0;
    check(H5Aiterate2(object.get(), H5_INDEX_NAME, H5_ITER_INC, &at, visit_attribute, this),
          "an attribute is damaged");
  }

  static herr_t visit_attribute(hid_t object, const char* name, const H5A_info_t*, void* self) {
    try {
      static_cast<FileReader*>(self)->attribute(object, name);
      return 0;
    } catch (...) {
      return -1;
    }
  }

  void attribute(hid_t object, const char* name) {
    const Id attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose, "an attribute");
    const Id type(H5Aget_type(attribute.get()), H5Tclose, "a type");
    const Id space(H5Aget_space(attribute.get()), H5Sclose, "a shape");
    if (H5Tget_class(type.get()) != H5T_STRING || H5Sget_simple_extent_npoints(space.get()) != 1)
      return;
    if (H5Tis_variable_str(type.get()) > 0) {
      char* text = nullptr;
      const Id memory(H5Tcopy(H5T_C_S1), H5Tclose, "a type");
      H5Tset_size(memory.get(), H5T_VARIABLE);
      H5Tset_cset(memory.get(), H5Tget_cset(type.get()));
      check(H5Aread(attribute.get(), memory.get(), &text), "an attribute");
      if (text) visitor_.attribute(visitor_.context, path_.c_str(), name, text, std::strlen(text));
      H5free_memory(text);
      return;
    }
    constexpr std::size_t kMaxText = 1 << 16;
    const std::size_t size = H5Tget_size(type.get());
    if (size > kMaxText) return;
    std::vector<char> text(size + 1);
    check(H5Aread(attribute.get(), type.get(), text.data()), "an attribute");
    visitor_.attribute(visitor_.context, path_.c_str(), name, text.data(),
                       std::strlen(text.data()));
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Failure{"dataset '" + path_ + "' " + why};
  }

  void dataset(hid_t object) {
    const Id type(H5Dget_type(object), H5Tclose, "a type");
    const Id space(H5Dget_space(object), H5Sclose, "a shape");
    const Id creation(H5Dget_create_plist(object), H5Pclose, "a dataset");
    // Both would read other files of the machine.
    if (H5Pget_layout(creation.get()) == H5D_VIRTUAL || H5Pget_external_count(creation.get()) != 0)
      refuse("is stored in other files");
    const DType dtype = dtype_of_type(type.get());
    if (dtype == DType::kInvalid) return;  // texts and records are no tensors
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (rank < 0) refuse("has no shape");
    std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
    if (rank > 0) H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
    std::vector<long long> dims;
    unsigned long long bytes = H5Tget_size(type.get());
    for (const hsize_t size : sizes) {
      if (size > (1ull << 62) || __builtin_mul_overflow(bytes, size, &bytes))
        refuse("has too many elements");
      dims.push_back(static_cast<long long>(size));
    }
    // Deflate makes at most 1,032 bytes of one.
    constexpr unsigned long long kMaxRatio = 1100;
    if (bytes / kMaxRatio > size_) refuse("would be larger than the file can hold");
    void* into = visitor_.dataset(visitor_.context, path_.c_str(), static_cast<int>(dtype), rank,
                                  dims.data(), static_cast<std::size_t>(bytes));
    if (!into) refuse("does not fit into memory");
    const Id memory(new_type(dtype), H5Tclose, "a type");
    if (bytes > 0 && H5Dread(object, memory.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, into) < 0)
      refuse("is damaged");
  }

  std::size_t size_;
  const TandemHdf5Visitor& visitor_;
  Id access_;
  std::string path_;
  Failure failure_;
};

void write_text(hid_t object, const char* name, const char* text) {
  const Id type(H5Tcopy(H5T_C_S1), H5Tclose, "a type");
  H5Tset_size(type.get(), H5T_VARIABLE);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  const Id space(H5Screate(H5S_SCALAR), H5Sclose, "a shape");
  const Id attribute(H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                     H5Aclose, "an attribute can't be written");
  check(H5Awrite(attribute.get(), type.get(), &text), "an attribute can't be written");
}

void write_item(hid_t file, hid_t with_parents, const TandemHdf5Item& item) {
  const char* path = *item.path ? item.path : "/";
  if (item.attribute) {
    const Id object(H5Oopen(file, path, H5P_DEFAULT), H5Oclose, "there is no such object");
    write_text(object.get(), item.attribute, item.text);
    return;
  }
  if (item.dtype == 0) {
    if (!*item.path || H5Lexists(file, path, H5P_DEFAULT) > 0) return;
    Id(H5Gcreate2(file, path, with_parents, H5P_DEFAULT, H5P_DEFAULT), H5Gclose, "a group");
    return;
  }
  std::vector<hsize_t> dims(item.dims, item.dims + item.rank);
  const Id type(new_type(static_cast<DType>(item.dtype)), H5Tclose, "a type");
  const Id space(
      item.rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(item.rank, dims.data(), nullptr),
      H5Sclose, "a shape");
  const Id dataset(
      H5Dcreate2(file, path, type.get(), space.get(), with_parents, H5P_DEFAULT, H5P_DEFAULT),
      H5Dclose, "a dataset can't be written");
  if (std::find(dims.begin(), dims.end(), hsize_t{0}) != dims.end()) return;
  check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, item.data),
        "a dataset can't be written");
}

// Whatever `work` throws becomes a code and a text.
template <class Work>
int guarded(char* error, std::size_t error_size, Work work) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // it would print its errors
  try {
    work();
    return 0;
  } catch (const Failure& failure) {
    std::snprintf(error, error_size, "%s", failure.why.c_str());
  } catch (const std::exception& failure) {
    std::snprintf(error, error_size, "%s", failure.what());
  }
  return 1;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int tandem_hdf5_read(const void* bytes, std::size_t size,
                                                            const TandemHdf5Visitor* visitor,
                                                            char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] { FileReader(bytes, size, *visitor).read(); });
}

__attribute__((visibility("default"))) int tandem_hdf5_write(
    const TandemHdf5Item* items, std::size_t count,
    void (*result)(void* context, const void* bytes, std::size_t size), void* context, char* error,
    std::size_t error_size) {
  return guarded(error, error_size, [&] {
    const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "access");
    check(H5Pset_fapl_core(access.get(), 1 << 20, 0), "memory");
    const Id file(H5Fcreate("in memory", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose,
                  "a file can't be made");
    const Id with_parents(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "access");
    check(H5Pset_create_intermediate_group(with_parents.get(), 1), "access");
    for (std::size_t i = 0; i < count; ++i) write_item(file.get(), with_parents.get(), items[i]);
    check(H5Fflush(file.get(), H5F_SCOPE_GLOBAL), "the file can't be written");
    const ssize_t size = H5Fget_file_image(file.get(), nullptr, 0);
    if (size < 0) throw Failure{"HDF5 failed: the file can't be written"};
    std::vector<char> image(static_cast<std::size_t>(size));
    if (H5Fget_file_image(file.get(), image.data(), image.size()) < 0)
      throw Failure{"HDF5 failed: the file can't be written"};
    result(context, image.data(), image.size());
  });
}

}  // extern "C"
