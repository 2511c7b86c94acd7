; Firedoor for one user of Windows, without an administrator. scripts/package-windows makes it.
;
;   setup.exe [/S]                       installs, or replaces what is there: newer or older
;   uninstall.exe [/S] [/PURGE] _?=DIR   gives every configuration back first, and stops where that fails: exit code 1, nothing removed.
;                                        /PURGE deletes settings, log and backups, too, which otherwise stay unless a window is answered so.
;                                        Exit code 2: it is removed, but something is left, which it names
;
; /S shows no window and says on the standard error stream why it stopped. With _?=, which both entries of the registry have, the
; uninstaller runs where it lies, so that whoever starts it is told how it ended; without, NSIS starts a copy and answers 0 at once.
;
; Compiled with -DVERSION= -DFILES= (what is packed) -DOUT=, and -DSIGN= (a command that signs the file behind it) where there is one.

; As the programs. It is also the only kind that runs where there is no 32-bit Windows.
Target amd64-unicode
!include LogicLib.nsh
!include WinMessages.nsh
!include WinVer.nsh
!include FileFunc.nsh
!include MUI2.nsh

Name "Firedoor"
OutFile "${OUT}"
RequestExecutionLevel user
; Always there: configurations name the shim by its path. What the command line says (/D=) is overwritten.
!define PLACE "$LOCALAPPDATA\Programs\Firedoor"
InstallDir "${PLACE}"
SetCompressor /SOLID lzma
; The dates of files here are those of a build.
SetDateSave off
CRCCheck force
ManifestSupportedOS Win10
BrandingText "Firedoor ${VERSION}"
ShowInstDetails show
ShowUninstDetails show
VIProductVersion "${VERSION}.0"
VIAddVersionKey ProductName "Firedoor"
VIAddVersionKey ProductVersion "${VERSION}"
VIAddVersionKey FileVersion "${VERSION}"
VIAddVersionKey FileDescription "Installs Firedoor"
VIAddVersionKey LegalCopyright "Apache-2.0"
!ifdef SIGN
!finalize '${SIGN} "%1"'
!uninstfinalize '${SIGN} "%1"'
!endif

!define MUI_WELCOMEPAGE_TEXT "A personal firewall for the tools that AI agents use: the app that asks you, its command line, and what stands between an AI client and its servers.$\r$\n$\r$\nIt goes into your own folder and onto your PATH, and changes no client's configuration before you say so (firedoor protect).$\r$\n$\r$\nPrograms that run go on with the version that they began with."
!define MUI_FINISHPAGE_TEXT "Open Firedoor from the Start menu, or say in a new terminal: firedoor scan"
!define MUI_FINISHPAGE_NOAUTOCLOSE
!define MUI_UNFINISHPAGE_NOAUTOCLOSE
!insertmacro MUI_PAGE_WELCOME
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE English

!define SHORTCUT "$SMPROGRAMS\Firedoor.lnk"
!define RUN "Software\Microsoft\Windows\CurrentVersion\Run"
!define ENTRY "Software\Microsoft\Windows\CurrentVersion\Uninstall\Firedoor"
; HKEY_CURRENT_USER, as the functions of Windows take it: its 32 bits with their sign.
!define USER -2147483647
!define ERROR_FILE_NOT_FOUND 2
!define REG_SZ 1
; Longer ones cannot be edited in Windows's own window, and parts of Windows have dropped them.
!define LONGEST_PATH 2047

Var Now
Var Failed
; What it ends with where it stops.
Var Code
; The user's PATH: its address in memory (0: it could not be read whole), the kind of its value (0: there is none), characters.
Var Path
Var PathKind
Var PathLength
; How many things are left that were to be removed, and the first of them.
Var Left
Var LeftOne

!macro Shared un
; Ends with what stands on the stack.
Function ${un}Stop
  Exch $9
  ${If} ${Silent}
    ; It has none of its own: the one it was given, or that of the window it was started in.
    System::Call 'kernel32::GetStdHandle(i -12) p .r8'
    ${If} $8 P= 0
      System::Call 'kernel32::AttachConsole(i -1)'
      System::Call 'kernel32::GetStdHandle(i -12) p .r8'
    ${EndIf}
    FileWrite $8 "Firedoor: $9$\r$\n"
  ${Else}
    DetailPrint "$9"
    MessageBox MB_OK|MB_ICONSTOP "$9"
  ${EndIf}
  SetErrorLevel $Code
  Abort "$9"
FunctionEnd

; One at a time, and only in its place.
Function ${un}Begin
  StrCpy $INSTDIR "${PLACE}"
  StrCpy $Code 1
  System::Call 'kernel32::CreateMutexW(p 0, i 0, w "Local\FiredoorSetup") p .r0 ?e'
  Pop $0
  ${If} $0 = 183
    Push "it is being installed or removed already. Nothing was changed; try again when that is done."
    Call ${un}Stop
  ${EndIf}
FunctionEnd

; Reads the user's PATH, with room behind it for one directory more. A string of NSIS would hold its first ${NSIS_MAX_STRLEN} characters only.
Function ${un}ReadPath
  StrCpy $Path 0
  StrCpy $PathKind 0
  StrCpy $PathLength 0
  ; REG_SZ and REG_EXPAND_SZ, as they stand there: RRF_RT_REG_SZ | RRF_RT_REG_EXPAND_SZ | RRF_NOEXPAND.
  System::Call 'advapi32::RegGetValueW(p ${USER}, w "Environment", w "Path", i 0x10000006, p 0, p 0, *i 0 r1) i .r0'
  ${If} $0 = ${ERROR_FILE_NOT_FOUND}
    System::Alloc 8192
    Pop $Path
    Return
  ${EndIf}
  ${IfThen} $0 <> 0 ${|} Return ${|}
  IntOp $2 $1 + 8192
  System::Alloc $2
  Pop $3
  System::Call 'advapi32::RegGetValueW(p ${USER}, w "Environment", w "Path", i 0x10000006, *i .r4, p r3, *i r2 r1) i .r0'
  System::Call 'kernel32::lstrlenW(p r3) i .r2'
  IntOp $1 $1 / 2
  IntOp $1 $1 - $2
  ; Behind its end stands at most another end.
  ${If} $0 = 0
  ${AndIf} $1 <= 2
    StrCpy $Path $3
    StrCpy $PathKind $4
    StrCpy $PathLength $2
  ${Else}
    System::Free $3
  ${EndIf}
FunctionEnd

; Writes what stands at $Path. The errors flag says whether that failed.
Function ${un}WritePath
  System::Call 'kernel32::lstrlenW(p $Path) i .r0'
  IntOp $0 $0 + 1
  IntOp $0 $0 * 2
  System::Call 'advapi32::RegSetKeyValueW(p ${USER}, w "Environment", w "Path", i $PathKind, p $Path, i r0) i .r1'
  ClearErrors
  ${If} $1 <> 0
    SetErrors
  ${EndIf}
FunctionEnd

; Programs that are started from now on are given the new one.
Function ${un}TellOthers
  SendMessage ${HWND_BROADCAST} ${WM_SETTINGCHANGE} 0 "STR:Environment" /TIMEOUT=5000
FunctionEnd

; $0: the address of ";PATH;", $1: where ";DIRECTORY;" begins in it, or 0. Whoever calls frees $0.
Function ${un}FindInPath
  IntOp $0 $PathLength * 2
  IntOp $0 $0 + 64
  System::Alloc $0
  Pop $0
  System::Call 'kernel32::lstrcpyW(p r0, w ";")'
  System::Call 'kernel32::lstrcatW(p r0, p $Path)'
  System::Call 'kernel32::lstrcatW(p r0, w ";")'
  System::Call 'shlwapi::StrStrIW(p r0, w ";$INSTDIR;") p .r1'
FunctionEnd
!macroend
!insertmacro Shared ""
!insertmacro Shared "un."

; ---- Installing

Function .onInit
  ${IfNot} ${AtLeastWin10}
    Push "it needs Windows 10 or newer. Nothing was changed."
    Call Stop
  ${EndIf}
  Call Begin
FunctionEnd

; Older programs that ran when they were replaced. Those that still run stay until the next time.
Function DeleteOld
  FindFirst $0 $1 "$INSTDIR\*.old"
  ${DoWhile} $1 != ""
    Delete /REBOOTOK "$INSTDIR\$1"
    FindNext $0 $1
  ${Loop}
  FindClose $0
  SetRebootFlag false
FunctionEnd

; A program may run: then Windows lets nobody write to its file, but rename it. Its processes go on with the old one.
!macro Replace NAME
  ClearErrors
  ${If} ${FileExists} "$INSTDIR\${NAME}"
    Rename "$INSTDIR\${NAME}" "$INSTDIR\${NAME}.$Now.old"
  ${EndIf}
  ${IfNot} ${Errors}
    Rename "$INSTDIR\${NAME}.new" "$INSTDIR\${NAME}"
  ${EndIf}
!macroend

; Where one could not be replaced: the old one again.
!macro PutBack NAME
  ${If} ${FileExists} "$INSTDIR\${NAME}.new"
    Delete "$INSTDIR\${NAME}.new"
  ${Else}
    Delete "$INSTDIR\${NAME}"
  ${EndIf}
  ${If} ${FileExists} "$INSTDIR\${NAME}.$Now.old"
    Rename "$INSTDIR\${NAME}.$Now.old" "$INSTDIR\${NAME}"
  ${EndIf}
!macroend

; The programs, in the order in which they are replaced: what starts others comes last.
!macro EachProgram WHAT
  !insertmacro ${WHAT} WebView2Loader.dll
  !insertmacro ${WHAT} firedoor-desktop.exe
  !insertmacro ${WHAT} firedoor-wasm.exe
  !insertmacro ${WHAT} firedoor-remote.exe
  !insertmacro ${WHAT} firedoor-shim.exe
  !insertmacro ${WHAT} firedoor.exe
!macroend

!macro BringNew NAME
  File "/oname=${NAME}.new" "${FILES}/${NAME}"
!macroend

!macro ReplaceNext NAME
  ${If} $Failed == 0
    !insertmacro Replace ${NAME}
    ${If} ${Errors}
      StrCpy $Failed 1
    ${EndIf}
  ${EndIf}
!macroend

Section "Firedoor" SecFiredoor
  SetOutPath "$INSTDIR"
  Call DeleteOld
  SetOverwrite try
  ClearErrors
  !insertmacro EachProgram BringNew
  File "${FILES}/LICENSE.txt"
  File "${FILES}/THIRD-PARTY-LICENSES.txt"
  File "${FILES}/README.md"
  File "${FILES}/RESTORE.txt"
  ${If} ${Errors}
    Delete "$INSTDIR\*.new"
    Push "not everything could be written into $INSTDIR. The programs that were there are as before."
    Call Stop
  ${EndIf}

  System::Call 'kernel32::GetSystemTimeAsFileTime(*l .s)'
  Pop $Now
  StrCpy $Failed 0
  !insertmacro EachProgram ReplaceNext
  ${If} $Failed <> 0
    !insertmacro EachProgram PutBack
    Push "the programs in $INSTDIR could not be replaced; another program holds them open. They are as before."
    Call Stop
  ${EndIf}
  Call DeleteOld

  ClearErrors
  WriteUninstaller "$INSTDIR\uninstall.exe"
  WriteRegStr HKCU "${ENTRY}" DisplayName "Firedoor"
  WriteRegStr HKCU "${ENTRY}" DisplayVersion "${VERSION}"
  WriteRegStr HKCU "${ENTRY}" Publisher "Firedoor"
  WriteRegStr HKCU "${ENTRY}" DisplayIcon "$INSTDIR\uninstall.exe"
  WriteRegStr HKCU "${ENTRY}" InstallLocation "$INSTDIR"
  WriteRegStr HKCU "${ENTRY}" UninstallString '"$INSTDIR\uninstall.exe" _?=$INSTDIR'
  WriteRegStr HKCU "${ENTRY}" QuietUninstallString '"$INSTDIR\uninstall.exe" /S _?=$INSTDIR'
  SectionGetSize ${SecFiredoor} $0
  WriteRegDWORD HKCU "${ENTRY}" EstimatedSize $0
  WriteRegDWORD HKCU "${ENTRY}" NoModify 1
  WriteRegDWORD HKCU "${ENTRY}" NoRepair 1
  CreateShortcut "${SHORTCUT}" "$INSTDIR\firedoor-desktop.exe"
  ${If} ${Errors}
    Push "the programs are in $INSTDIR, but the Start menu or the entry for removing them could not be written."
    Call Stop
  ${EndIf}
  Call AddToPath
  Call LookForWebView
SectionEnd

; Where Microsoft's installer of its runtime says that it is there, for the machine or for one user.
!define WEBVIEW "Software\Microsoft\EdgeUpdate\Clients\{F3017226-FE2A-4295-8BDF-00C3A9A7E4C5}"
!define NO_WEBVIEW "Firedoor's windows need Microsoft's WebView2 runtime, which is not installed here. Until it is, questions are answered with: firedoor pending, firedoor answer. It is at https://developer.microsoft.com/microsoft-edge/webview2"

; Everything but the windows works without.
Function LookForWebView
  SetRegView 32
  ReadRegStr $0 HKLM "${WEBVIEW}" pv
  SetRegView lastused
  ReadRegStr $1 HKCU "${WEBVIEW}" pv
  ${If} $0 == ""
  ${OrIf} $0 == "0.0.0.0"
    StrCpy $0 $1
  ${EndIf}
  ${If} $0 == ""
  ${OrIf} $0 == "0.0.0.0"
    Push "${NO_WEBVIEW}"
    Call Tell
    ${IfNot} ${Silent}
      MessageBox MB_OK|MB_ICONINFORMATION "${NO_WEBVIEW}"
    ${EndIf}
  ${EndIf}
FunctionEnd

; Says what stands on the stack, and goes on.
Function Tell
  Exch $0
  DetailPrint "$0"
  ${If} ${Silent}
    System::Call 'kernel32::GetStdHandle(i -12) p .r8'
    FileWrite $8 "Firedoor: $0$\r$\n"
  ${EndIf}
  Pop $0
FunctionEnd

; What was appended is kept in the registry as it was appended: removing takes away exactly that.
Function AddToPath
  ClearErrors
  ReadRegStr $0 HKCU "${ENTRY}" PathAdded
  ; Once is enough, also where somebody has taken it out since.
  ${IfThen} $0 != "" ${|} Return ${|}
  Call ReadPath
  ${If} $Path P= 0
    Push "it cannot be read whole"
    Call PathLeft
    Return
  ${EndIf}
  Call FindInPath
  System::Free $0
  ${IfThen} $1 P<> 0 ${|} Return ${|}
  ; A directory with one of these in its name would be read as something else.
  System::Call 'shlwapi::StrPBrkW(w "$INSTDIR", w ";%$\"") p .r1'
  StrLen $2 $INSTDIR
  IntOp $2 $2 + $PathLength
  ${If} $1 P<> 0
  ${OrIf} $2 >= ${LONGEST_PATH}
    Push "it would be longer than ${LONGEST_PATH} characters, or the directory has a character that means something there"
    Call PathLeft
    Return
  ${EndIf}
  StrCpy $3 "$INSTDIR"
  ${If} $PathLength > 0
    IntOp $4 $PathLength - 1
    IntOp $4 $4 * 2
    IntPtrOp $4 $Path + $4
    System::Call '*$4(&i2 .r5)'
    ${If} $5 <> 59
      StrCpy $3 ";$INSTDIR"
    ${EndIf}
  ${EndIf}
  ${If} $PathKind = 0
    StrCpy $PathKind ${REG_SZ}
    WriteRegDWORD HKCU "${ENTRY}" PathMade 1
  ${EndIf}
  WriteRegStr HKCU "${ENTRY}" PathAdded "$3"
  System::Call 'kernel32::lstrcatW(p $Path, w r3)'
  Call WritePath
  ${If} ${Errors}
    DeleteRegValue HKCU "${ENTRY}" PathAdded
    DeleteRegValue HKCU "${ENTRY}" PathMade
    Push "it cannot be written"
    Call PathLeft
  ${Else}
    Call TellOthers
  ${EndIf}
  System::Free $Path
FunctionEnd

; Firedoor works without: what starts it knows its whole path.
Function PathLeft
  Exch $0
  Push "PATH was left as it is: $0. Add $INSTDIR yourself, or start firedoor.exe by its whole path."
  Call Tell
  Pop $0
FunctionEnd

; ---- Removing

Function un.onInit
  Call un.Begin
FunctionEnd

; Gives everything back. $0 is its exit code, or "error", and $1 what it said.
Function un.Restore
  nsExec::ExecToStack '"$INSTDIR\firedoor.exe" restore --all'
  Pop $0
  Pop $1
  DetailPrint "firedoor restore --all: $0"
FunctionEnd

Section Uninstall
  SetOutPath "$INSTDIR\.."
  Call un.Restore
  ${If} $0 != 0
    Push "not everything could be given back, so nothing was removed (firedoor restore --all: $0). Remedy what it says, and remove Firedoor again; where firedoor.exe cannot be started, install it again first.$\r$\n$1"
    Call un.Stop
  ${EndIf}

  ; An engine may protect by itself what a client has added, and a client may start the shim that it was told of before.
  Rename "$INSTDIR\firedoor-shim.exe" "$INSTDIR\firedoor-shim.exe.removed"
  Call un.EndPrograms
  Call un.Restore
  ${If} $0 != 0
    Rename "$INSTDIR\firedoor-shim.exe.removed" "$INSTDIR\firedoor-shim.exe"
    Push "not everything could be given back, so nothing was removed (firedoor restore --all: $0). Remedy what it says, and remove Firedoor again.$\r$\n$1"
    Call un.Stop
  ${EndIf}

  ; Before the files: what follows is done even where one of them is held open.
  Call un.RemoveFromPath
  Delete "${SHORTCUT}"
  ; The app writes it where it is to start with the login (src-tauri/src/login/run_key.rs).
  ReadRegStr $0 HKCU "${RUN}" Firedoor
  ${If} $0 == '"$INSTDIR\firedoor-desktop.exe" --background'
    DeleteRegValue HKCU "${RUN}" Firedoor
  ${EndIf}
  DeleteRegKey HKCU "${ENTRY}"
  Call un.DeletePrograms

  ${GetParameters} $0
  ClearErrors
  ${GetOptions} $0 "/PURGE" $1
  ${If} ${Errors}
    MessageBox MB_YESNO|MB_ICONQUESTION "Keep Firedoor's settings, log and backups?$\r$\n$\r$\nYour clients' configurations are as they were before Firedoor in any case." /SD IDYES IDYES kept
  ${EndIf}
  Call un.Purge
kept:
  ${If} $Left > 0
    StrCpy $Code 2
    Push "it was removed, but $Left files or directories are left, which other programs hold open or which cannot be reached: $LeftOne"
    Call un.Stop
  ${EndIf}
SectionEnd

; Ends what runs from here: by the whole path of its file, for others may have the same name.
Function un.EndPrograms
  System::Alloc 65536
  Pop $0
  System::Call 'kernel32::K32EnumProcesses(p r0, i 65536, *i .r1) i .r2'
  ${If} $2 = 0
    StrCpy $1 0
  ${EndIf}
  StrLen $6 "$INSTDIR\firedoor"
  StrCpy $2 0
  ${DoWhile} $2 < $1
    IntPtrOp $3 $0 + $2
    System::Call '*$3(i .r3)'
    ; PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_TERMINATE | SYNCHRONIZE
    System::Call 'kernel32::OpenProcess(i 0x101001, i 0, i r3) p .r4'
    ${If} $4 P<> 0
      System::Call 'kernel32::QueryFullProcessImageNameW(p r4, i 0, w .r5, *i ${NSIS_MAX_STRLEN}) i .r7'
      StrCpy $5 $5 $6
      ${If} $7 <> 0
      ${AndIf} $5 == "$INSTDIR\firedoor"
        System::Call 'kernel32::TerminateProcess(p r4, i 1)'
        System::Call 'kernel32::WaitForSingleObject(p r4, i 10000)'
      ${EndIf}
      System::Call 'kernel32::CloseHandle(p r4)'
    ${EndIf}
    IntOp $2 $2 + 4
  ${Loop}
  System::Free $0
FunctionEnd

Function un.RemoveFromPath
  ReadRegStr $9 HKCU "${ENTRY}" PathAdded
  ${IfThen} $9 == "" ${|} Return ${|}
  Call un.ReadPath
  ${If} $Path P= 0
  ${OrIf} $PathKind = 0
    Return
  ${EndIf}
  ; Nothing was appended since: its end goes.
  StrLen $0 $9
  IntOp $0 $PathLength - $0
  ${If} $0 >= 0
    IntOp $1 $0 * 2
    IntPtrOp $1 $Path + $1
    System::Call 'kernel32::CompareStringOrdinal(p r1, i -1, w r9, i -1, i 0) i .r2'
    ${If} $2 = 2
      System::Call '*$1(&i2 0)'
      StrCpy $PathLength $0
      Call un.PutPath
      Return
    ${EndIf}
  ${EndIf}
  Call un.FindInPath
  ${If} $1 P<> 0
    ; The directory goes, and one of the two signs around it.
    StrLen $2 ";$INSTDIR"
    IntOp $2 $2 * 2
    IntPtrOp $3 $1 + $2
    System::Call 'kernel32::lstrlenW(p r3) i .r4'
    IntOp $4 $4 + 1
    IntOp $4 $4 * 2
    System::Call 'kernel32::RtlMoveMemory(p r1, p r3, p r4)'
    ; Without the signs that were put around the whole.
    IntPtrOp $3 $0 + 2
    System::Call 'kernel32::lstrlenW(p r3) i .r4'
    ${If} $4 > 0
      IntOp $4 $4 - 1
      IntOp $5 $4 * 2
      IntPtrOp $5 $3 + $5
      System::Call '*$5(&i2 0)'
    ${EndIf}
    System::Call 'kernel32::lstrcpyW(p $Path, p r3)'
    StrCpy $PathLength $4
    Call un.PutPath
  ${EndIf}
  System::Free $0
FunctionEnd

; Writes the PATH without Firedoor, or deletes it where there was none before.
Function un.PutPath
  Push $0
  ReadRegDWORD $0 HKCU "${ENTRY}" PathMade
  ${If} $0 = 1
  ${AndIf} $PathLength = 0
    DeleteRegValue HKCU "Environment" "Path"
  ${Else}
    Call un.WritePath
  ${EndIf}
  Call un.TellOthers
  Pop $0
FunctionEnd

Function un.DeletePrograms
  Delete "$INSTDIR\LICENSE.txt"
  Delete "$INSTDIR\THIRD-PARTY-LICENSES.txt"
  Delete "$INSTDIR\README.md"
  Delete "$INSTDIR\RESTORE.txt"
  Delete "$INSTDIR\*.new"
  ; A process that was ended may hold its file for a moment.
  StrCpy $0 0
  ${Do}
    ClearErrors
    Delete "$INSTDIR\firedoor.exe"
    Delete "$INSTDIR\firedoor-remote.exe"
    Delete "$INSTDIR\firedoor-wasm.exe"
    Delete "$INSTDIR\firedoor-desktop.exe"
    Delete "$INSTDIR\WebView2Loader.dll"
    Delete "$INSTDIR\firedoor-shim.exe.removed"
    Delete "$INSTDIR\*.old"
    ${IfNot} ${Errors}
      ${Break}
    ${EndIf}
    Sleep 200
    IntOp $0 $0 + 1
  ${LoopUntil} $0 > 50
  ${If} ${Errors}
    IntOp $Left $Left + 1
    StrCpy $LeftOne "$INSTDIR"
  ${EndIf}
  ${If} $EXEDIR == $INSTDIR
    ; It holds its own file open until it has ended. Not where it is installed again meanwhile.
    StrCpy $0 "Firedoor\uninstall.exe"
    ExecShell "open" "$SYSDIR\cmd.exe" '/d /c for /l %i in (1,1,30) do @if exist Firedoor if not exist Firedoor\firedoor.exe del /q $0 2>nul & rd Firedoor 2>nul & $SYSDIR\ping.exe -n 2 127.0.0.1 >nul' SW_HIDE
  ${Else}
    Delete "$INSTDIR\uninstall.exe"
    RMDir "$INSTDIR"
  ${EndIf}
FunctionEnd

; Where Firedoor looks for them: crates/model/src/paths.rs.
Function un.Purge
  ReadEnvStr $0 LOCALAPPDATA
  ${IfThen} $0 == "" ${|} StrCpy $0 "$LOCALAPPDATA" ${|}
  Push "$0\firedoor"
  Call un.RemoveTree
  ReadEnvStr $0 APPDATA
  ${IfThen} $0 == "" ${|} StrCpy $0 "$APPDATA" ${|}
  Push "$0\firedoor"
  Call un.RemoveTree
FunctionEnd

; Removes what stands on the stack with all that is in it; of a junction, a symbolic link or a mount point, the link alone. A server's private
; home may have links to the user's own directories, and RMDir /r goes into those (NSIS, Source/exehead/util.c, myDelete).
Function un.RemoveTree
  Exch $0
  Push $1
  Push $2
  Push $3
  ; Names may be longer than 260 characters, but for those on other machines.
  StrCpy $1 $0 2
  ${If} $1 != "\\"
    StrCpy $0 "\\?\$0"
  ${EndIf}
  System::Call 'kernel32::GetFileAttributesW(w r0) i .r3'
  ${If} $3 <> -1
    IntOp $1 $3 & 1
    ${If} $1 <> 0
      System::Call 'kernel32::SetFileAttributesW(w r0, i 0x80)'
    ${EndIf}
    ; FILE_ATTRIBUTE_DIRECTORY, and with FILE_ATTRIBUTE_REPARSE_POINT
    IntOp $1 $3 & 0x410
    ${If} $1 = 0x10
      FindFirst $1 $2 "$0\*"
      ${DoWhile} $2 != ""
        ${If} $2 != "."
        ${AndIf} $2 != ".."
          Push "$0\$2"
          Call un.RemoveTree
        ${EndIf}
        FindNext $1 $2
      ${Loop}
      FindClose $1
    ${EndIf}
    IntOp $1 $3 & 0x10
    ${If} $1 <> 0
      System::Call 'kernel32::RemoveDirectoryW(w r0) i .r1'
    ${Else}
      System::Call 'kernel32::DeleteFileW(w r0) i .r1'
    ${EndIf}
    ${If} $1 = 0
      IntOp $Left $Left + 1
      ${IfThen} $LeftOne == "" ${|} StrCpy $LeftOne $0 ${|}
    ${EndIf}
  ${EndIf}
  Pop $3
  Pop $2
  Pop $1
  Pop $0
FunctionEnd
