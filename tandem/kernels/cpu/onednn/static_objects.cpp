#include "tandem/kernels/cpu/onednn/static_objects.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include <dnnl.h>

namespace tandem::cpu::onednn {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kCalled = R_X86_64_JUMP_SLOT, kReferred = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr std::uint32_t kCalled = R_AARCH64_JUMP_SLOT, kReferred = R_AARCH64_GLOB_DAT;
#else
constexpr std::uint32_t kCalled = 0, kReferred = 0;
#endif

int register_nothing(void (*)(void*), void*, void*) { return 0; }

// Where a loaded library keeps the addresses of the functions of others that it calls (its global
// offset table), as the tables of the ELF format describe it.
class Imports {
 public:
  explicit Imports(const dl_phdr_info& library) : base_(library.dlpi_addr) {
    for (int i = 0; i < library.dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = library.dlpi_phdr[i];
      if (segment.p_type == PT_DYNAMIC) read(at<const ElfW(Dyn)>(segment.p_vaddr));
      if (segment.p_type == PT_GNU_RELRO) {
        protected_begin_ = base_ + segment.p_vaddr;
        protected_end_ = protected_begin_ + segment.p_memsz;
      }
    }
  }

  // Calls of `function` go to `replacement` from now on. False if there are none.
  bool replace(const char* function, void* replacement) const {
    bool found = false;
    for (const Table& table : {called_, referred_}) {
      if (found) break;  // a library does either; the second table is long
      for (std::size_t i = 0; symbols_ && names_ && i < table.count; ++i) {
        const ElfW(Rela)& entry = table.entries[i];
        const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(entry.r_info));
        if (type != kCalled && type != kReferred) continue;
        const ElfW(Sym)& symbol = symbols_[ELF64_R_SYM(entry.r_info)];
        if (std::strcmp(names_ + symbol.st_name, function) == 0)
          found = set(base_ + entry.r_offset, replacement) || found;
      }
    }
    return found;
  }

 private:
  struct Table {
    const ElfW(Rela) * entries = nullptr;
    std::size_t count = 0;
  };
  template <class T>
  T* at(ElfW(Addr) address) const {
    return reinterpret_cast<T*>(base_ + address);
  }
  // The dynamic linker has turned the addresses in the table into absolute ones.
  void read(const ElfW(Dyn) * entry) {
    for (; entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) address = entry->d_un.d_ptr;
      switch (entry->d_tag) {
        case DT_SYMTAB: symbols_ = reinterpret_cast<const ElfW(Sym)*>(address); break;
        case DT_STRTAB: names_ = reinterpret_cast<const char*>(address); break;
        case DT_JMPREL: called_.entries = reinterpret_cast<const ElfW(Rela)*>(address); break;
        case DT_RELA: referred_.entries = reinterpret_cast<const ElfW(Rela)*>(address); break;
        case DT_PLTRELSZ: called_.count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_RELASZ: referred_.count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        default: break;
      }
    }
  }
  bool set(ElfW(Addr) slot, void* value) const {
    const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
    const bool is_protected = slot >= protected_begin_ && slot < protected_end_;
    auto* const begin = reinterpret_cast<void*>(slot / page * page);
    if (is_protected && mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return false;
    __atomic_store_n(reinterpret_cast<void**>(slot), value, __ATOMIC_RELEASE);
    if (is_protected) mprotect(begin, page, PROT_READ);
    return true;
  }

  ElfW(Addr) base_;
  ElfW(Addr) protected_begin_ = 0, protected_end_ = 0;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  Table called_, referred_;
};

// The address where the library with this one is loaded; 0: unknown, or not a library.
ElfW(Addr) base_of(const void* address) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || !map)
    return 0;
  return map->l_addr;
}

bool replace_registration() {
  if (kCalled == 0) return false;
  struct Search {
    ElfW(Addr) base;
    bool replaced;
  };
  // Linked statically, oneDNN's objects cannot be distinguished from this library's.
  Search search{base_of(reinterpret_cast<const void*>(&dnnl_version)), false};
  if (search.base == 0 || search.base == base_of(reinterpret_cast<const void*>(&base_of)))
    return false;
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        if (library->dlpi_addr != wanted.base) return 0;
        wanted.replaced =
            Imports(*library).replace("__cxa_atexit", reinterpret_cast<void*>(&register_nothing));
        return 1;
      },
      &search);
  return search.replaced;
}

}  // namespace

bool keep_static_objects() {
  static const bool kept = replace_registration();
  return kept;
}

}  // namespace tandem::cpu::onednn
