// Debian's wine 8 has no ProcessPrng, which Rust's standard library asks for random numbers. Windows 10 and later have it:
// this stands beside the program in tests only.
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T length) {
    return SystemFunction036(bytes, (ULONG)length);
}
